"""The guide of the test kit: its blocks run as they stand."""

from __future__ import annotations

import hedgerow_testing
from hedgerow_testing import plugin
from testing.guide import BLOCKS, TEXT, laid_out, run_pytest


def test_every_block_of_python_is_executed_by_a_test():
    assert TEXT.count("```python") == len(BLOCKS)
    assert BLOCKS.keys() == {
        "test_in_memory.py", "test_sandbox.py", "of_kopf.py", "test_of_kopf.py"
    }  # fmt: skip


def test_the_one_in_memory_runs(tmp_path):
    assert "4 passed" in run_pytest(laid_out(tmp_path), "test_in_memory.py")


def test_it_names_every_fixture_and_every_public_name():
    fixtures = {
        name
        for name, value in vars(plugin).items()
        if type(value).__name__ == "FixtureFunctionDefinition"
    }
    public = set(hedgerow_testing.__all__)

    assert {"sandbox", "in_memory", "operator_process"} < fixtures
    assert {name for name in fixtures | public if name not in TEXT} == set()
