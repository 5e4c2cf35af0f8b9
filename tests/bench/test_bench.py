"""What `task bench` makes of its figures."""

from __future__ import annotations

import json
from typing import Any

import anyio

from bench.__main__ import (
    MARKS,
    NEUTRAL,
    ROWS,
    main,
)
from bench.admission import ADMISSION_MARKS, latency, review
from bench.scale import neutral
from bench.shards import Answered, flags, over, sizes, unanswered
from bench.shards import table as of_shards
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.serving.webhooks.answering import answered

Result = dict[str, Any]


def test_every_place_is_one_that_the_harness_measures():
    source = (NEUTRAL / "run.py").read_text("utf-8")

    for row in ROWS:
        phase, field = row.place.split(".")
        assert f'"{phase}"' in source
        assert field.removeprefix("kube-apiserver") in source


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
