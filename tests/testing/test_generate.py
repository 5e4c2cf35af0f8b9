from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic_core import from_json
from typer import Typer
from typer.testing import CliRunner

from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_testing import generate

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run():
    app = Typer()
    app.command()(generate.main)
    return lambda *args: CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def written(tmp_path_factory, run):
    place, document = tmp_path_factory.mktemp("written"), REPOSITORY / generate.OPENAPI
    assert run("--root", place, "--openapi", document).exit_code == 0
    return place


@pytest.fixture
def root(tmp_path, written):
    return shutil.copytree(written, tmp_path / "root")


KIND = "kind: CustomResourceDefinition"


class TestTheRepository:
    def test_a_definition_is_in_the_repository_once(self):
        paths = (REPOSITORY / "manifests").rglob("*.yaml")
        found = {path.parent for path in paths if KIND in path.read_text("utf-8").splitlines()}

        assert found == {REPOSITORY / generate.CRDS}


class TestGenerate:
    def test_it_names_what_it_writes_after_which_a_check_says_nothing(self, root, run):
        (root / generate.CRDS / "kustomization.yaml").unlink()

        assert (
            run("--root", root).output == "manifests/chart/definitions/kustomization.yaml written\n"
        )
        result = run("--root", root, "--check")

        assert (result.exit_code, result.output) == (0, "")

    def test_a_check_names_what_drifted_and_changes_nothing(self, root, run):
        crd = root / generate.CRDS / generate.crd_file(BlueGreen)
        crd.write_text("edited by hand")
        result = run("--root", root, "--check")

        assert result.exit_code == 1
        assert crd.name in result.output
        assert crd.read_text() == "edited by hand"

    def test_types_from_a_server_are_taken_over_without_descriptions(self, root, run, tmp_path):
        whole = from_json((root / generate.OPENAPI).read_bytes())
        whole["info"]["version"] = "1.99"
        whole["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["description"] = "theirs"
        whole["components"]["schemas"]["io.k8s.Unused"] = {"type": "object"}
        given = tmp_path / "server.json"
        given.write_bytes(generate.encode(whole))

        result = run("--root", root, "--openapi", given)

        assert result.output == f"{generate.OPENAPI} written\n"
        kept = (root / generate.OPENAPI).read_text()
        assert '"1.99"' in kept
        assert "theirs" not in kept
        assert "Unused" not in kept

    def test_types_can_be_taken_from_a_sandbox(self, root, run, monkeypatch):
        async def document():
            return {**from_json((root / generate.OPENAPI).read_bytes()), "info": {"version": "2"}}

        monkeypatch.setattr(generate, "sandbox_document", document)

        assert run("--root", root, "--sandbox").output == f"{generate.OPENAPI} written\n"
