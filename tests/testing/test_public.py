"""The test kit as others see it: its names, and how little it costs where it is not used."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

import hedgerow_testing
from support.code.sources import ROOT

LISTED = {
    "Api", "AuditLog", "InMemory", "OperatorProcess", "Reply", "RunAudit", "SomebodyElse",
    "StartOperator", "VirtualClock", "VirtualLoop", "assert_no_writes", "assert_settled",
    "eventually", "holders", "must_be_unforced_applies", "target",
}  # fmt: skip
"""What others import: a name that goes, or comes, is a decision."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


class TestNames:
    def test_the_list_is_what_it_is(self):
        assert set(hedgerow_testing.__all__) == LISTED

    def test_another_one_is_not(self):
        with pytest.raises(AttributeError, match="nonsense"):
            _ = hedgerow_testing.nonsense


class TestPlugin:
    def test_pytest_finds_it_under_the_name_of_its_module(self):
        (entry,) = PROJECT["entry-points"]["pytest11"].items()

        assert entry == ("hedgerow_testing.plugin",) * 2

    def test_what_is_installed_with_it_is_pytest_alone(self):
        (extra,) = PROJECT["optional-dependencies"]["testing"]

        assert extra.startswith("pytest>=")
        assert not any("pytest" in line for line in PROJECT["dependencies"])

    def test_importing_it_imports_nothing_but_pytest(self):
        program = (
            "import pytest, sys; before = set(sys.modules); import hedgerow_testing.plugin;"
            "print(sorted(set(sys.modules) - before))"
        )
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

        assert found.stdout.decode().strip() == ("['hedgerow_testing', 'hedgerow_testing.plugin']")

    def test_tests_that_do_not_use_it_run_as_they_did(self, tmp_path):
        (tmp_path / "test_x.py").write_text(
            "import pytest, sys\n\n\n@pytest.fixture\ndef sandbox():\n    return 'mine'\n\n\n"
            "def test_x(sandbox):\n    assert sandbox == 'mine'\n"
            "    assert not any(m.startswith('hedgerow_testing.sandbox') for m in sys.modules)\n",
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "pytest", "-q", "-p", "hedgerow_testing.plugin"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

        assert "1 passed" in done.stdout, done.stdout
