"""The operator's image, as the Containerfile makes it."""

import json
import subprocess
import tomllib

import pytest

from e2e.node.images import OPERATOR, PYTHON, ROOT, Images
from e2e.node.node import Node
from e2e.pods import container, finished, fresh, pod, spec
from hedgerow_testing.api import Api, Object

pytestmark = pytest.mark.e2e

TITLE = "org.opencontainers.image"
LOOK = """
import importlib.metadata, importlib.util, json, os, pathlib, subprocess, sys, sysconfig
def written(path):
    try:
        pathlib.Path(path, "x").write_text("x")
    except OSError as error:
        return error.strerror
def flags(source):
    cached = pathlib.Path(importlib.util.cache_from_source(str(source)))
    return cached.read_bytes()[4] if cached.exists() else None
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
sources = [p for p in pathlib.Path(sys.prefix).rglob("*.py") if "/hedgerow" in str(p)]
packages = importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
print(json.dumps({
    "process": {
        "uid": os.getuid(), "gid": os.getgid(), "capabilities": int(status["CapBnd"].strip(), 16),
        "root": written("/"), "packages": written(sys.prefix),
    },
    "help": subprocess.run(["hedgerow", "--help"], capture_output=True, text=True).stdout,
    "sources": {str(source): flags(source) for source in sources},
    "packages": [package.name.lower() for package in packages],
}))
"""


@pytest.fixture(scope="module")
def inside(one_node: Node, one_api: Api) -> Object:
    """What a pod of the image tells of itself."""
    with one_node.network(), fresh(one_api) as namespace:
        declared = spec(container(OPERATOR, command=("python", "-c", LOOK)))
        phase, log = finished(one_node, one_api, pod(namespace, "look", declared))
    assert phase == "Succeeded", log
    return json.loads(log)


class TestLabels:
    def test_they_say_what_the_image_is_and_what_it_stands_on(self, images: Images):
        """Fact: the labels that buildah wrote."""
        labels = images.config(OPERATOR)["Labels"]
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

        assert labels[f"{TITLE}.version"] == project["version"]
        assert labels[f"{TITLE}.base.name"] == PYTHON
        assert labels[f"{TITLE}.base.digest"] == images.digest(PYTHON)

    def test_they_name_the_commit_though_layers_of_an_earlier_one_are_used(self, images: Images):
        """Fact: buildah takes layers of an earlier build."""
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        label = images.config(OPERATOR)["Labels"][f"{TITLE}.revision"]

        assert label.partition("-")[0] == head.stdout.strip()


class TestImage:
    def test_it_names_a_numeric_user_that_is_not_root(self, images: Images):
        """Fact: the user that buildah wrote."""
        assert images.config(OPERATOR)["User"] == "65532:65532"

    def test_it_starts_the_command(self, images: Images):
        """Fact: the entry point that buildah wrote."""
        assert images.config(OPERATOR)["Entrypoint"] == ["hedgerow"]

    def test_it_runs_read_only_without_capabilities_as_its_own_user(self, inside: Object):
        """Fact: what the kernel grants a process of the image."""
        assert inside["process"] == {
            "uid": 65532,
            "gid": 65532,
            "capabilities": 0,
            "root": "Read-only file system",
            "packages": "Read-only file system",
        }

    def test_help_is_told_on_a_read_only_root(self, inside: Object):
        """Fact: the command runs where nothing can be written."""
        assert "run" in inside["help"]

    def test_its_bytecode_is_there_whatever_the_times_of_the_files(self, inside: Object):
        """Fact: Python reads the image's bytecode by hash."""
        assert len(inside["sources"]) > 100
        assert [path for path, flags in inside["sources"].items() if flags != 1] == []

    def test_it_holds_nothing_of_development(self, inside: Object):
        """Fact: the packages that were installed into the image."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        dev = {line.partition("==")[0].partition("[")[0] for line in development(project)}
        packages = {*inside["packages"]}

        assert "hedgerow" in packages
        assert packages & {*dev, "pip", "setuptools", "wheel", "hatchling"} == set()


def development(project: Object) -> list[str]:
    return [line.lower() for line in project["optional-dependencies"]["dev"]]
