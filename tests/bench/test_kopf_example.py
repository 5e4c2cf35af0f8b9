"""The example of kopf: what is counted, and the page that it is shown on."""

from __future__ import annotations

import json
import shutil
from textwrap import dedent

import pytest

from bench import kopf_example
from bench.claims.of_hedgerow import CLAIMS
from bench.kopf_example import HERE, PAGE, PEERS, Figures, lines_of, main, table
from hedgerow_testing import target
from support.objects.definitions import definition, free, items, of, text
from testing.guide import run_pytest

STEPS = ("started", "made", "relabelled", "restarted")
SEEN = {"taken": "is left", "told": "nowhere", "removed": "stays away", "deleted": "stays away"}
FIGURES = Figures(
    {"a.py": 3, "b.yaml": 4}, dict.fromkeys(STEPS, 2), dict.fromkeys(STEPS, 0.5), SEEN, 12.5
)
CLAIM = {
    **target("kopf.dev/v1", "EphemeralVolumeClaim", "my-claim", "default"),
    "spec": {"size": "1G"},
}


class TestLines:
    @pytest.mark.parametrize(
        ("text", "count"),
        [
            ('"""Doc."""\n\n# why\nx = 1\n', 1),
            ('def f():\n    """Doc.\n\n    More.\n    """\n    return """a\n\nb"""\n', 4),
            ("x = [\n    1,\n\n    2,\n]  # why\n", 4),
        ],
    )
    def test_comments_docstrings_and_empty_lines_are_none(self, tmp_path, text, count):
        path = tmp_path / "x.py"
        path.write_text(text)

        assert lines_of(path) == count

    def test_nor_are_those_of_a_manifest(self, tmp_path):
        path = tmp_path / "x.yaml"
        path.write_text("# why\na: 1\n\nb: 2\n")

        assert lines_of(path) == 2


class TestPage:
    @pytest.mark.parametrize("name", ["of_kopf.py", "of_hedgerow.py"])
    def test_its_programs_are_those_that_are_measured(self, name):
        block = PAGE.read_text("utf-8").partition(f"<!-- {name} -->\n\n```python\n")[2]

        assert block.partition("```\n")[0] == (HERE / name).read_text("utf-8")

    def test_its_test_in_memory_passes(self, tmp_path):
        block = PAGE.read_text("utf-8").partition("<!-- test_of_hedgerow.py -->\n\n")[2]
        code = block.partition("```python\n")[2].partition("   ```\n")[0]
        (tmp_path / "test_of_hedgerow.py").write_text(dedent(code), "utf-8")
        shutil.copy(HERE / "of_hedgerow.py", tmp_path)

        assert "1 passed" in run_pytest(tmp_path, "test_of_hedgerow.py")

    def test_a_table_has_a_row_for_each_figure(self):
        rows = list(table({"kopf": FIGURES, "hedgerow": FIGURES}, 5))

        assert rows[0] == "| 5 claims | kopf | hedgerow |"
        assert "| lines of code | 7: `a.py` 3, `b.yaml` 4 | 7: `a.py` 3, `b.yaml` 4 |" in rows
        assert "| make them: writes | 2 | 2 |" in rows
        assert "| restart with them: CPU of the operator, s | 0.5 | 0.5 |" in rows

    def test_it_is_written_from_a_measurement_and_the_rest_of_it_stays(self, tmp_path, monkeypatch):
        page, results = tmp_path / "page.md", tmp_path / "results.json"
        page.write_text("before\n<!-- measured -->\nold\n<!-- /measured -->\nafter\n")
        monkeypatch.setattr(kopf_example, "measured", lambda peer, count: FIGURES)

        assert main(["-n", "5", "--page", str(page), "--output", str(results)]) == 0
        text = page.read_text()
        assert text.startswith("before\n<!-- measured -->\nMeasured on 2")
        assert "kopf 1." in text
        assert text.endswith("| stays away | stays away |\n<!-- /measured -->\nafter\n")
        assert json.loads(results.read_text())["figures"].keys() == {p.name for p in PEERS}
        assert main(["--report", str(results), "--page", str(page)]) == 0
        assert page.read_text() == text


CLAIMED = of(accessModes=items({}), storageClassName=text(), resources=of(requests=free({})))
VOLUMES = definition("", "PersistentVolumeClaim", of(spec=CLAIMED))
"""As much of a PersistentVolumeClaim as the example writes."""


def test_the_one_of_hedgerow_passes_size_and_labels_on_and_leaves_a_label_of_others(in_memory):
    cluster = in_memory(CLAIMS, kinds=[VOLUMES])
    volume = target("v1", "PersistentVolumeClaim", "my-claim", "default")
    cluster.apply(CLAIM)
    cluster.assert_settled()
    made = cluster.must_get(volume)
    assert made["spec"]["resources"] == {"requests": {"storage": "1G"}}

    cluster.somebody_else.edit(volume, {"metadata": {"labels": {"owner": "them"}}})
    labelled = {**CLAIM, "metadata": {**CLAIM["metadata"], "labels": {"owner": "me", "a": "b"}}}
    cluster.apply(labelled)
    cluster.assert_settled()

    assert cluster.must_get(volume)["metadata"]["labels"]["a"] == "b"
    assert cluster.somebody_else.must_hold(volume, "metadata", "labels", "owner") == "them"
    (contested,) = cluster.must_get(CLAIM)["status"]["contested"]
    assert contested["path"] == ".metadata.labels.owner"
