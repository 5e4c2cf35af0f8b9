"""The files of the demo: the sample, changed step by step in one place each."""

from __future__ import annotations

import pytest
import yaml

from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_testing.demo import samples
from support.code.sources import ROOT


@pytest.fixture
def written(tmp_path):
    samples.write(tmp_path)
    return {path.stem: yaml.safe_load(path.read_text()) for path in tmp_path.glob("*.yaml")}


class TestSamples:
    def test_the_first_is_the_published_sample(self, written):
        published = (ROOT / "manifests" / samples.SAMPLE).read_text()

        assert written["blue"] == yaml.safe_load(published)

    def test_each_changes_one_thing_of_the_one_before(self, written):
        for name in ("blue", "green", "greeting", "agreed"):
            assert written[name]["kind"] == "BlueGreen"
        written["blue"]["spec"]["routeTo"] = "Green"
        assert written["blue"] == written["green"]
        written["green"]["spec"]["greenSpec"]["containers"][0]["env"] = [samples.VARIABLE]
        assert written["green"] == written["greeting"]
        written["greeting"]["spec"]["greenSpec"]["containers"][0]["image"] = samples.IMAGE
        assert written["greeting"] == written["agreed"]

    def test_what_somebody_else_sets_differs_from_what_is_declared(self):
        name, image = samples.container()

        assert image != samples.IMAGE
        assert name == "green"

    def test_all_of_them_are_blue_greens(self, written):
        for manifest in written.values():
            assert BlueGreen.model_validate(manifest).metadata.name == "demo"
