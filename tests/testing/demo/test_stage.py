"""The demo's stage, and the directory it plays in."""

from __future__ import annotations

import io
import subprocess

import pytest
from rich.console import Console

from hedgerow_testing.demo import stage as stages
from hedgerow_testing.demo.errors import DemoError, UnheardError
from hedgerow_testing.demo.page import Page
from hedgerow_testing.demo.stage import folder, sandboxed
from hedgerow_testing.sandbox.errors import SandboxError

pytestmark = pytest.mark.anyio


@pytest.fixture
def page(shown):
    return Page(Console(file=shown, width=80))


class TestSandboxed:
    async def test_it_is_brought_up_as_it_is_typed(self, page, shown, tmp_path, monkeypatch):
        asked = []

        async def up(_sandbox, options, _progress):
            asked.append(options)
            raise SandboxError("no", "go")

        monkeypatch.setattr(stages.Sandbox, "up", up)
        with pytest.raises(SandboxError):
            async with sandboxed(page, tmp_path, keep=False):
                pass

        assert [options.nodes for options in asked] == [1]
        line = "$ hedgerow sandbox up --nodes 1 --audit audit.log --dir sandbox\n"
        assert line in shown.getvalue()

    async def test_it_is_taken_down_though_nobody_reads_any_more_what_is_typed(
        self, page, tmp_path, monkeypatch
    ):
        downs = []

        async def down(_sandbox, *_):
            downs.append(page)

        def gone(_line):
            raise UnheardError("nobody", "reads")

        monkeypatch.setattr(stages.Sandbox, "down", down)
        monkeypatch.setattr(page, "typed", gone)
        with pytest.raises(UnheardError):
            await stages.take_down(page, stages.Sandbox(tmp_path / "sandbox"))

        assert downs == [page]


class TestFolder:
    @pytest.mark.parametrize("keep", [True, False])
    async def test_it_goes_at_the_end_unless_it_is_to_be_kept(
        self, page, keep, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(stages.tempfile, "tempdir", str(tmp_path))
        async with folder(page, keep=keep) as directory:
            assert directory.stat().st_mode & 0o777 == 0o700

        assert directory.exists() is keep

    @pytest.mark.parametrize(
        ("error", "log", "stays"),
        [
            (DemoError("not so", "look"), True, True),
            (DemoError("not so", "look"), False, False),
            (UnheardError("nobody", "reads"), True, False),
            (KeyboardInterrupt(), True, False),
        ],
        ids=["a failure with logs", "a failure without", "nobody reads on", "Ctrl-C"],
    )
    async def test_after_a_failure_it_stays_if_there_is_something_to_read(
        self, page, shown, error, log, stays, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(stages.tempfile, "tempdir", str(tmp_path))

        async def failing():
            async with folder(page, keep=True) as directory:
                if log:
                    (directory / "operator.log").touch()
                raise error

        with pytest.raises(type(error)):
            await failing()

        assert bool(list(tmp_path.iterdir())) is stays
        assert ("What there is to read" in shown.getvalue()) is stays


def test_the_exports_are_what_a_shell_evaluates(tmp_path):
    stages.Shell(Page(Console(file=io.StringIO())), tmp_path, {"A": "x y'z"}, {})
    script = f'. {tmp_path}/env; printf %s "$A"'
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert shown.stdout == "x y'z"
