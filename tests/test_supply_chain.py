"""What an image is said to be made of: only what is there."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from support.code.sources import ROOT

Object = dict[str, Any]
STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Description: C library
 Depends: not a field
Version: 2.41-12+deb13u1

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""
RELEASE = 'PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="13"\n\n'
DIGEST, BASE = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


def script(name: str, *arguments: object) -> Object:
    told = subprocess.run(
        [sys.executable, ROOT / ".ci" / name, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(told.stdout)


@pytest.fixture(scope="module")
def sbom(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("sbom")
    (directory / "status").write_text(STATUS)
    (directory / "release").write_text(RELEASE)
    archive = {"archive_info": {"hashes": {"sha256": "c" * 64}}}
    installed = [
        {"metadata": {"name": "PyYAML"}, "download_info": archive},
        {"metadata": {"name": "anyio"}, "download_info": {"dir_info": {}}},
    ]
    (directory / "report").write_text(json.dumps({"install": installed}))
    names = [f"--{name}={directory / name}" for name in ("status", "release", "report")]
    made = directory / "sbom.json"
    made.write_text(json.dumps(script("sbom.py", *names)))
    return made


class TestSbom:
    def test_it_lists_every_distribution_that_is_installed(self, sbom: Path):
        bom = json.loads(sbom.read_text())
        named = {one["name"]: one["version"] for one in bom["components"]}

        assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
        assert bom["metadata"]["component"]["name"] == "hedgerow"
        for one in metadata.distributions():
            assert one.name == "hedgerow" or named[one.name] == one.version
        references = [one["bom-ref"] for one in bom["components"]]
        assert len(references) == len(set(references))

    def test_it_lists_the_packages_of_the_base_that_are_installed(self, sbom: Path):
        components = json.loads(sbom.read_text())["components"]

        assert [one["purl"] for one in components if one["purl"].startswith("pkg:deb/")] == [
            "pkg:deb/debian/libc6@2.41-12%2Bdeb13u1?arch=amd64&distro=debian-13"
        ]

    def test_an_archive_has_the_hash_that_pip_has_checked(self, sbom: Path):
        components = json.loads(sbom.read_text())["components"]
        hashed = {one["name"]: one["hashes"] for one in components if "hashes" in one}

        assert hashed == {"PyYAML": [{"alg": "SHA-256", "content": "c" * 64}]}


class TestProvenance:
    @pytest.fixture
    def said(self, sbom: Path):
        def say(**given: str) -> Object:
            usual = {
                "image": "hedgerow:1",
                "digest": DIGEST,
                "base": "python:3.11-slim",
                "base-digest": BASE,
                "revision": "0123abc",
                "engine": "buildah version 1",
                "started": "2026-01-01T00:00:00Z",
            }
            options = [f"--{name}={value}" for name, value in {**usual, **given}.items()]
            return script("provenance.py", *options, "--sbom", sbom)

        return say

    def test_it_names_the_image_and_all_that_it_is_made_of(self, said):
        found = said()

        assert found["_type"] == "https://in-toto.io/Statement/v1"
        assert found["subject"] == [{"name": "hedgerow:1", "digest": {"sha256": "a" * 64}}]
        assert found["predicateType"] == "https://slsa.dev/provenance/v1"
        made_of = found["predicate"]["buildDefinition"]["resolvedDependencies"]
        lock = hashlib.sha256((ROOT / ".ci/image.txt").read_bytes()).hexdigest()
        assert made_of[0] == {"uri": "git+file:.", "digest": {"gitCommit": "0123abc"}}
        assert made_of[1] == {"uri": "oci:python:3.11-slim", "digest": {"sha256": "b" * 64}}
        assert {"uri": "file:.ci/image.txt", "digest": {"sha256": lock}} in made_of
        assert made_of[-1]["digest"] == {"sha256": "c" * 64}

    def test_what_is_not_known_is_left_out(self, said):
        found = said(**{"base-digest": "", "revision": ""})

        made_of = found["predicate"]["buildDefinition"]["resolvedDependencies"]
        assert made_of[0] == {"uri": "oci:python:3.11-slim"}

    def test_changes_that_are_not_committed_are_told(self, said):
        found = said(revision="0123abc-dirty")

        made_of = found["predicate"]["buildDefinition"]["resolvedDependencies"]
        assert made_of[0]["digest"] == {"gitCommit": "0123abc"}
        assert "not committed" in made_of[0]["annotations"]["note"]


class TestBuilding:
    def test_without_an_engine_it_says_so_in_one_line(self, tmp_path: Path):
        for tool in ("bash", "dirname", "sed"):
            (tmp_path / tool).symlink_to(Path("/usr/bin") / tool)
        done = subprocess.run(
            [ROOT / ".ci/image"],
            env={**os.environ, "PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 2
        assert done.stderr == (
            "task image: there is no buildah, podman or docker on this machine;"
            " install one of them\n"
        )
