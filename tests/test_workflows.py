"""Workflows: what GitHub runs is in order, may do little, and only calls what runs anywhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from hedgerow_testing.sandbox.errors import SandboxError
from support.code.sources import ROOT
from support.programs import gotools

WORKFLOWS = {path.name: path for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}
TEMPLATE = ROOT / "operator/hedgerow_tools/new/templates/ci.yml.txt"
# The first use builds actionlint, for 22 s of CPU.
pytestmark = pytest.mark.timeout(600)
JOBS = [
    (name, job, declared)
    for name, path in WORKFLOWS.items()
    for job, declared in yaml.safe_load(path.read_text("utf-8"))["jobs"].items()
]


@pytest.fixture(scope="module")
def actionlint() -> Path:
    try:
        return gotools.tool("actionlint")
    except SandboxError as error:
        reason = f"actionlint cannot be built here: {error}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def lint(actionlint: Path, *files: Path) -> tuple[int, str]:
    """Return its exit code and what it found, without the linters that it finds on the machine."""
    alone = ("-shellcheck=", "-pyflakes=", "-no-color", "-oneline")
    done = subprocess.run(
        [actionlint, *alone, *files],
        cwd=ROOT, check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


class TestActionlint:
    def test_it_finds_nothing_in_the_workflows_nor_in_that_of_a_new_operator(
        self, actionlint, tmp_path
    ):
        generated = Path(shutil.copy(TEMPLATE, tmp_path / "ci.yml"))

        assert WORKFLOWS.keys() == {"ci.yml", "release.yml"}
        assert lint(actionlint, *WORKFLOWS.values(), generated) == (0, "")

    def test_it_finds_a_context_that_does_not_exist(self, actionlint, tmp_path):
        text = WORKFLOWS["release.yml"].read_text("utf-8")
        wrong = tmp_path / "release.yml"
        wrong.write_text(text.replace("github.actor", "github.actress"))

        code, said = lint(actionlint, wrong)

        assert (code, 'property "actress" is not defined' in said) == (1, True)


class TestRights:
    def test_a_job_has_only_the_rights_that_it_names(self):
        for path in WORKFLOWS.values():
            given = yaml.safe_load(path.read_text("utf-8"))["permissions"]
            assert given in ({}, {"contents": "read"})
        writing = {
            (name, job): [right for right, value in rights.items() if value == "write"]
            for name, job, declared in JOBS
            if "write" in (rights := declared.get("permissions", {})).values()
        }

        assert writing == {
            ("release.yml", "publish"): ["contents", "packages", "id-token", "attestations"],
            ("release.yml", "site"): ["pages", "id-token"],
        }

    def test_a_job_that_runs_ends_by_itself_and_keeps_no_credentials(self):
        for _, job, declared in JOBS:
            steps = declared.get("steps", [])
            assert not steps or declared["timeout-minutes"] <= 90, job
            checkouts = [step for step in steps if "checkout@" in step.get("uses", "")]
            assert all(not one["with"]["persist-credentials"] for one in checkouts), job

    def test_the_job_that_builds_has_nothing_that_could_be_taken(self):
        jobs = {(name, job): declared for name, job, declared in JOBS}
        build = jobs["release.yml", "build"]

        assert build["permissions"] == {"contents": "read"}
        assert [word for word in ("secrets.", "github.token") if word in json.dumps(build)] == []
        assert "environment" not in build
        made = [step["run"] for step in build["steps"] if "--make" in step.get("run", "")]
        assert len(made) == 1
        assert "--make" not in json.dumps(jobs["release.yml", "publish"])

    def test_what_is_from_outside_of_github_is_no_shell_text(self):
        """A tag or a title with a `$(…)` in it would be run."""
        texts = [step["run"] for *_, job in JOBS for step in job.get("steps", []) if "run" in step]

        assert texts
        assert [text for text in texts if "${{" in text] == []


class TestWhatTheyCall:
    def test_the_checks_are_those_of_any_machine_and_come_before_a_release(self):
        jobs = {(name, job): declared for name, job, declared in JOBS}
        ran = [step["run"] for step in jobs["ci.yml", "test"]["steps"] if "run" in step]

        assert ran == ["sudo .ci/run"]
        assert jobs["release.yml", "ci"]["uses"] == "./.github/workflows/ci.yml"
        assert jobs["release.yml", "build"]["needs"] == "ci"
        assert jobs["release.yml", "publish"]["needs"] == "build"

    @pytest.mark.parametrize("path", [*WORKFLOWS.values(), TEMPLATE], ids=lambda path: path.name)
    def test_an_action_is_pinned_by_commit_with_its_version_beside_it(self, path: Path):
        """Whoever can move a tag would else have what the job has; renovate reads the version."""
        lines = re.findall(r"uses: *(.+)", path.read_text("utf-8"))
        outside = [line for line in lines if not line.startswith("./")]
        pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")

        assert outside
        assert [line for line in outside if not pinned.fullmatch(line)] == []

    def test_an_action_has_one_version_everywhere(self):
        texts = [path.read_text("utf-8") for path in (*WORKFLOWS.values(), TEMPLATE)]
        pins = {pin for text in texts for pin in re.findall(r"uses: *([^./].+)", text)}
        actions = [pin.partition("@")[0] for pin in pins]

        assert sorted(actions) == sorted({*actions})

    def test_nothing_else_is_called_that_could_change(self):
        """A container or a service by its tag, or a workflow of somebody else."""
        for name, job, declared in JOBS:
            assert {"container", "services"} & declared.keys() == set(), (name, job)
            assert declared.get("uses", "./").startswith("./"), (name, job)
