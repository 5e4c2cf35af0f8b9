"""What `task bench` makes of its figures."""

from __future__ import annotations

import json
import platform
from argparse import Namespace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import anyio
import pytest

from bench.__main__ import (
    MARKS,
    NEUTRAL,
    ROWS,
    cache,
    figure,
    interpreter,
    is_optimized,
    main,
    of_pairs,
    of_peers,
    paired,
    ratio,
)
from bench.admission import ADMISSION_MARKS, latency, review
from bench.scale import neutral
from bench.shards import Answered, flags, over, sizes, unanswered
from bench.shards import table as of_shards
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.serving.webhooks.answering import answered

Result = dict[str, Any]


def result(seconds: float, **more: Any) -> Result:
    return {"operator": "x", "converge": {"s": seconds, **more}, "flip": {"s": None}}


PAIRS = [(result(2.0), result(1.0)), (result(9.0), result(3.0)), (result(2.4), result(2.0))]


class TestFigures:
    def test_a_figure_is_found_by_its_place(self):
        assert figure(result(2.0), "converge.s") == 2.0

    @pytest.mark.parametrize("place", ["flip.s", "cron.late_p50_ms", "converge.s.x"])
    def test_what_was_not_measured_is_none(self, place):
        assert figure(result(2.0), place) is None

    def test_a_ratio_needs_both(self):
        assert ratio((result(3.0), result(2.0)), "converge.s") == 1.5
        assert ratio((result(3.0), result(0.0)), "converge.s") is None
        assert ratio((result(3.0), {}), "converge.s") is None

    def test_every_place_is_one_that_the_harness_measures(self):
        source = (NEUTRAL / "run.py").read_text("utf-8")

        for row in ROWS:
            phase, field = row.place.split(".")
            assert f'"{phase}"' in source
            assert field.removeprefix("kube-apiserver") in source


class TestTable:
    def test_it_has_the_ratio_of_each_pair_and_the_median_of_the_pairs(self):
        [line] = [line for line in of_pairs(PAIRS) if line.startswith("| converge, s")]

        assert line == "| converge, s | 2.4 | 2 | 2.00, 3.00, 1.20 | **2.00** | 1.15 |"

    def test_peers_stand_side_by_side(self):
        lines = list(of_peers({"go-default": result(2.0), "kopf": result(4.0)}))

        assert lines[0] == "| measure | go-default | kopf |"
        assert "| converge, s | 2 | 4 |" in lines


class TestPage:
    @pytest.fixture
    def page(self, tmp_path) -> Path:
        figures = {
            "day": "2026-01-01",
            "version": "1",
            "n": 3,
            "machine": "2 cores",
            "pairs": PAIRS,
            "peers": {},
        }
        (tmp_path / "figures.json").write_text(json.dumps(figures), "utf-8")
        page = tmp_path / "performance.md"
        page.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n", "utf-8")
        return page

    def test_only_what_is_between_the_marks_is_written_and_twice_is_as_once(self, page):
        words = ["--report", str(page.with_name("figures.json")), "--page", str(page)]
        main(words)
        once = page.read_text("utf-8")
        main(words)

        assert page.read_text("utf-8") == once
        assert once.startswith(f"before\n{MARKS[0]}\n")
        assert once.endswith(f"{MARKS[1]}\nafter\n")
        assert "old" not in once
        assert "| converge, s |" in once

    def test_the_plot_is_well_formed_and_has_a_bar_for_each_row_that_was_measured(self, page):
        main(["--report", str(page.with_name("figures.json")), "--page", str(page)])

        root = ET.parse(page.with_name("performance.svg")).getroot()  # noqa: S314 - our own
        assert len(root.findall("{http://www.w3.org/2000/svg}rect")) == 1


class TestAdmission:
    def test_most_answers_and_the_slowest_ones_are_told(self):
        took = [0.5] * 97 + [0.7, 2.0, 44.126]

        assert latency(took) == {"n": 100, "p50_ms": 0.5, "p99_ms": 2.0, "max_ms": 44.13}

    def test_only_its_table_is_written(self, tmp_path):
        found = {"n": 2000, "p50_ms": 0.5, "p99_ms": 2.0, "max_ms": 44.13}
        figures = {"day": "2026-01-01", "version": "1", "machine": "2 cores", "pairs": []}
        given = tmp_path / "figures.json"
        given.write_text(json.dumps({**figures, "admission": found}), "utf-8")
        page = tmp_path / "performance.md"
        first, last = ADMISSION_MARKS
        page.write_text(f"{MARKS[0]}\nkept\n{MARKS[1]}\n{first}\nold\n{last}\n", "utf-8")

        main(["--report", str(given), "--page", str(page)])
        assert page.read_text("utf-8").splitlines() == [
            MARKS[0],
            "kept",
            MARKS[1],
            first,
            "Measured on 2026-01-01 with hedgerow 1: 2 cores.",
            "",
            "| reviews | p50, ms | p99, ms | max, ms |",
            "|--:|--:|--:|--:|",
            "| 2,000 | 0.5 | 2.0 | 44.13 |",
            last,
        ]

    def test_what_is_reviewed_is_admitted(self):
        body = json.dumps(review(neutral().bluegreen("bench", "new"))).encode()

        answer = anyio.run(answered, body, bluegreen.CONTROLLER)
        assert answer["response"]["allowed"] is True


@pytest.mark.parametrize(
    ("prefix", "flags", "said"),
    [
        ("/usr", "'--enable-shared'", " of "),
        ("/usr/local", "'--enable-optimizations' '--with-lto'", ""),
        ("/home/me/.pyenv/versions/3.11.7", "'--enable-shared'", ", built without optimizations"),
        ("/home/me/.pyenv/versions/3.11.7", None, ", built without optimizations"),
    ],
)
def test_the_figures_say_how_python_was_built(monkeypatch, prefix, flags, said):
    monkeypatch.setattr("sys.base_prefix", prefix)
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: flags)

    version, _, more = interpreter().partition(platform.python_version())
    assert (version, more.startswith(said), bool(more)) == ("Python ", True, bool(said))
    assert is_optimized() == (said in {"", " of "})


@pytest.mark.parametrize(("number", "first"), [(0, "hedgerow"), (1, "go-same"), (2, "hedgerow")])
def test_every_other_pair_begins_with_the_peer(monkeypatch, number, first):
    began: list[str] = []

    def run(names: list[str], _given: object, _cp: object) -> list[dict[str, str]]:
        began.append(names[0])
        return [{"operator": name} for name in names]

    monkeypatch.setattr(f"{paired.__module__}.measured", run)

    found = paired(number, Namespace(), Path())
    assert [one["operator"] for one in found] == ["hedgerow", "go-same"]
    assert began == [first]


def test_what_is_built_is_kept_by_its_sources(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a")
    other.write_text("b")

    assert cache("x", [one]) == cache("x", [one])
    assert cache("x", [one]) != cache("x", [other])


class TestShards:
    def test_all_resources_have_a_namespace_and_one_has_a_tenth(self):
        found = sizes(9000, 300)

        assert (len(found), sum(found), found[0]) == (300, 9000, 900)
        assert min(found) >= 1
        assert sorted(found[1:], reverse=True) == found[1:]

    def test_for_how_long_a_namespace_gave_no_answer_counts_from_the_kill(self):
        answers = [
            Answered("dead", 8.0, 0.1),
            Answered("alive", 9.0, 0.1),
            Answered("last", 10.5, 0.1),
            Answered("alive", 11.5, 0.1),
            Answered("dead", 26.0, 15.5),
            Answered("last", 26.5, 14.0),
        ]

        assert list(unanswered(answers, since=10.0)) == [0.5, 1.5, 16.0, 16.0]

    def test_each_shard_has_its_option_and_is_elected(self):
        assert flags(2) == [("--shard", "0/2"), ("--shard", "1/2")]
        assert flags(0) == [("--leader-elect",)]

    def row(self, shards: int, cpu: list[float], **more: float) -> Result:
        parts = {"cpu_s": cpu, "bytes": cpu, "rss_mib": [50 + each for each in cpu]}
        return {"shards": shards, "bare_mib": 50.0, "server_cpu_s": 2.0, **parts, **more}

    def test_each_row_is_beside_the_operator_that_does_all(self):
        rows = [self.row(0, [10.0]), self.row(2, [4.0, 6.0], killed_s=16.0)]

        shown = [line.strip("| ").split(" | ") for line in of_shards(rows)][2:]
        assert shown[1] == ["2", *["60", "1.00"] * 3, "1.00", "16.0"]
        assert not list(of_shards([]))

    def test_what_three_may_take_is_bounded(self):
        alone, good = self.row(0, [10.0]), self.row(3, [4.5, 3.0, 3.0], killed_s=17.0)
        bad = self.row(3, [4.6, 6.6, 1.0], killed_s=17.1)

        assert list(over([alone, good, self.row(2, [9.0, 9.0])])) == []
        assert [line.split()[0] for line in over([alone, bad])] == ["cpu_s", "rss_mib", "served"]
