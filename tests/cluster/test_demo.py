"""The demo as a user runs it: what it prints holds, its lines work, and it leaves nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import pytest

from hedgerow_testing.api import Api
from hedgerow_testing.waiting import eventually
from pictures import recording
from pictures.drawing import PAPERS
from support.code.sources import ROOT
from support.programs.leftovers import nothing_left

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

DEMO = [sys.executable, "-m", "hedgerow", "demo"]
ACTS = [
    "A cluster of its own",
    "The custom resource, by server-side apply, and a namespace",
    "The operator",
    "One BlueGreen gives two Deployments and a Service",
    "routeTo is flipped, and the Service follows",
    "Somebody else takes a field, and nothing is overwritten",
    "The fields beside it still follow the spec",
    "One way to settle it: leave the field to its holder",
    "Another way: agree on the value",
    "What the API server itself noted of all this",
    "It stays as it is: go on by hand",
]
CHECKED = [
    "the Service selects Blue",
    "each was written by hedgerow-bluegreen, by server-side apply",
    "the Service selects Green",
    "the Deployments were left alone",
    "a Warning Event says so too",
    "the image still is busybox:1.37",
    "the field is held by kubectl-set (Update)",
    "the plan adds the variable, and leaves the image as it is",
    "the Deployment has GREETING",
    'the tree shows .spec.template.spec.containers[name="green"].image where it is contested',
    "owners shows the command that yields the field",
    "the BlueGreen is annotated with hedgerow.dev/yield",
    "nothing is contested; Serving: Green is available",
    "hedgerow-bluegreen (Apply) and kubectl-set (Update) share the image",
    "and never with force",
]


@dataclass(frozen=True)
class Played:
    """How a demo ended and what it printed; `root` is where it made its directory."""

    code: int
    printed: str
    errors: str
    root: Path

    @property
    def acts(self) -> list[str]:
        return re.findall(r"^ ?\d+  (.+)$", self.printed, re.MULTILINE)

    @property
    def text(self) -> str:
        """What was printed, with the lines that were broken to fit put together again."""
        return " ".join(self.printed.split())

    @property
    def lines(self) -> list[str]:
        """The lines that were typed."""
        return re.findall(r"^    \$ (.+)$", self.printed, re.MULTILINE)

    @property
    def offered(self) -> list[str]:
        """The commands in what was printed: alone on a line, in backticks, or after a colon."""
        alone = re.findall(r"^ +((?:kubectl|hedgerow) .+)$", self.printed, re.MULTILINE)
        named = re.findall(r"`((?:kubectl|hedgerow) [^`]+)`", self.printed)
        return [*alone, *named, *re.findall(r"what to do: (.+)$", self.printed, re.MULTILINE)]

    def pid(self) -> int:
        found = re.search(r"it runs as process (\d+)", self.printed)
        assert found
        return int(found[1])


def play(root: Path, *flags: str, columns: int = 80) -> Played:
    ended = subprocess.run(
        [*DEMO, *flags],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(root), "COLUMNS": str(columns)},
        timeout=300,
    )
    return Played(ended.returncode, ended.stdout, ended.stderr, root)


def in_shell(directory: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Type a line in another terminal, as the demo invites one to."""
    script = f"cd {directory} && . ./env && {line}"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture(scope="class")
def kept(nodes_binaries, tmp_path_factory):
    """A demo that was told to leave everything running, on as wide a page as its pictures."""
    root = tmp_path_factory.mktemp("kept")
    played = play(root, "--keep", columns=recording.COLUMNS)
    yield played
    for directory in root.iterdir():
        in_shell(directory, f"kill {played.pid()}; hedgerow sandbox down --dir sandbox")


@pytest.fixture(scope="class")
def directory(kept) -> Path:
    [directory] = kept.root.iterdir()
    return directory


@pytest.fixture(scope="class")
def api(directory):
    api = Api(directory / "sandbox" / "kubeconfig")
    yield api
    api.close()


class TestKept:
    """In this order: each test goes on where the one before it stopped."""

    def test_it_says_how_to_go_on_and_leaves_everything_running(self, kept, directory):
        """Fact: a sandbox and an operator outlive the command that began them."""
        assert (kept.code, kept.errors) == (0, "")
        assert kept.acts == ACTS
        assert f"cd {directory} && . ./env" in kept.lines
        assert not gone(kept.pid())

    @pytest.mark.parametrize("text", CHECKED)
    def test_it_says_what_was_read_back(self, kept, text):
        """Fact: what a real server answers in each act."""
        assert f"✓ {text}" in kept.text

    def test_the_conflict_names_field_object_and_holder(self, kept):
        """Fact: which entry `kubectl set image` leaves."""
        path = '.spec.template.spec.containers[name="green"].image'
        assert f"{path} of Deployment/demogreen-deployment, kubectl-set (Update)" in kept.text

    @pytest.mark.parametrize("paper", PAPERS)
    def test_its_picture_says_what_it_says_today(self, kept, paper):
        """Fact: what a run on a real server prints today."""
        shown = (ROOT / f"docs/pictures/demo-{paper}.svg").read_text("utf-8")

        # `task pictures` draws it anew.
        assert recording.told(shown) == recording.told(recording.draw(kept.printed, paper))

    def test_the_readme_shows_what_it_printed(self, kept):
        """Fact: what `hedgerow` prints of a real cluster today."""
        readme = (ROOT / "README.md").read_text("utf-8")
        examples = re.findall(r"<!-- demo -->\n+```console\n(.*?)```", readme, re.DOTALL)
        # A line with nothing but an ellipsis stands for lines that are left out.
        parts = [part for text in examples for part in re.split(r"^…$", text, flags=re.MULTILINE)]
        printed = recording.plain(kept.printed)

        assert [part for part in parts if recording.plain(part) not in printed] == []
        commands = [text.split()[:3] for text in examples]
        assert commands == [["$", "hedgerow", name] for name in ("tree", "owners", "plan")]

    def test_its_lines_work_as_typed(self, kept, directory):
        """Fact: a shell and kubectl take each line as it is printed."""
        begins = (
            *("kubectl get", "kubectl events", "kubectl set", "kubectl apply"),
            *("grep", "hedgerow install"),
        )
        repeatable = [line for line in kept.lines if line.startswith(begins)]
        failed = {
            line: ended.stderr
            for line in repeatable
            if (ended := in_shell(directory, line)).returncode
        }

        assert len(repeatable) > 10
        assert failed == {}

    def test_every_command_that_it_prints_can_be_pasted(self, kept, directory):
        """Fact: a shell and the server take each command that is offered."""
        asked = {line: in_shell(directory, f"set -n; {line}") for line in kept.offered}
        assert [line for line, ended in asked.items() if ended.returncode] == []
        assert any("hedgerow.dev/claim=" in line for line in kept.offered)

        # Where something is written, the server is asked whether it would take it.
        written = [line for line in kept.offered if line.startswith("kubectl annotate")]
        dry = {line: in_shell(directory, f"{line} --dry-run=server") for line in written}
        assert len(written) >= 2
        assert {line: ended.stderr for line, ended in dry.items() if ended.returncode} == {}

    def test_its_next_lines_make_a_conflict_and_show_it(self, kept, directory, api):
        """Fact: a conflict comes about by kubectl in what the demo has left."""
        begins = kept.lines.index(next(one for one in kept.lines if "busybox:1.36" in one))
        tree, owners, conflict, contested = kept.lines[begins - 2 : begins + 2]

        assert in_shell(directory, tree).returncode == 0
        assert in_shell(directory, owners).returncode == 0
        assert in_shell(directory, conflict).returncode == 0
        shown = eventually(
            lambda: (
                said
                if "hedgerow.dev/yield=" in (said := in_shell(directory, contested).stdout)
                else ""
            ),
            30,
            "the conflict",
        )
        # The later tests find the BlueGreen as the demo has left it.
        undone = conflict.replace("busybox:1.36", "busybox:1.37")
        assert in_shell(directory, undone).returncode == 0
        assert "busybox:1.36" in shown

    def test_it_ends_as_it_says(self, kept, directory):
        """Fact: the lines by which processes and files of a sandbox go."""
        for line in kept.lines[-3:]:
            assert in_shell(directory, line).returncode == 0

        assert list(kept.root.iterdir()) == []
        nothing_left(kept.root)


@pytest.fixture(scope="class")
def ended(nodes_binaries, tmp_path_factory) -> Played:
    """A demo that has ended by itself."""
    return play(tmp_path_factory.mktemp("ended"))


class TestEnded:
    def test_nothing_is_left(self, ended):
        """Fact: the garbage collector removes what the demo made."""
        assert (ended.code, ended.errors) == (0, "")
        assert ended.acts[-1] == "Cleaning up"
        assert "✓ its Service and Deployments are gone with it" in ended.text
        assert "✓ the operator stopped in good order" in ended.text
        assert list(ended.root.iterdir()) == []
        assert gone(ended.pid())

    def test_it_is_readable_on_a_narrow_page_and_plain_without_a_terminal(self, ended):
        """Fact: how wide the answers of kubectl and of the server are."""
        wide = [line for line in ended.printed.splitlines() if len(line) > 80]

        # The directory is made under a long path here.
        wide = [line for line in wide if str(ended.root) not in line]
        # A command is never folded, nor is what kubectl and `hedgerow install` print.
        printed = r"kubectl |hedgerow |^    ([A-Z0-9$]|customresourcedefinition/)"
        prose = [line for line in wide if not re.search(printed, line)]
        assert prose == []
        assert any(line.startswith("    $ kubectl annotate bluegreens.app") for line in wide)
        assert "\x1b" not in ended.printed


def test_ctrl_c_leaves_nothing(nodes_binaries, tmp_path):
    """Fact: which processes a signal reaches, and which are left.

    What becomes of those that a killed program started is in tests/testing/sandbox/test_leash.py.
    """
    root, output = tmp_path / "root", tmp_path / "output"
    root.mkdir()
    environment = {**os.environ, "TMPDIR": str(root), "PYTHONUNBUFFERED": "1"}
    with (
        output.open("wb") as file,
        subprocess.Popen(DEMO, stdout=file, stderr=file, env=environment) as demo,
    ):
        try:
            eventually(lambda: "One BlueGreen gives" in output.read_text("utf-8"), 240)
            demo.send_signal(signal.SIGINT)
            code = demo.wait(60)
        finally:
            demo.kill()

    printed = output.read_text("utf-8")
    assert code == 130
    assert printed.count("interrupted by SIGINT") == 1
    assert "✓ nothing of the sandbox is left" in printed
    assert list(root.iterdir()) == []
    nothing_left(root)
