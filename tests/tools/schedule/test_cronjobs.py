"""hedgerow schedule next of a CronJob: its starts, and what becomes of those that are missed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_tools.schedule import command

NOW = datetime(2026, 3, 2, 10, 5, tzinfo=UTC)
OURS, THEIRS = "batch.tutorial.kubebuilder.io/v1", "batch/v1"
HOURLY = "0 * * * *"
MADE_UP = "A start that was missed is made however late; of several only the newest."
SINCE = "Since 2026-03-02T08:00:00Z, 2 starts passed without a Job: "


def cronjob(version: str = OURS, last: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": "CronJob",
        "metadata": {"name": "demo", "namespace": "shop"},
        "spec": {"schedule": HOURLY, "jobTemplate": {"spec": {}}, **spec},
        "status": {"lastScheduleTime": last} if last else {},
    }


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(command, "SystemClock", lambda: SimpleNamespace(now=lambda: NOW))


@pytest.fixture
def asked(typing, tmp_path):
    """Type a line with a file of these objects; give exit code, standard output and error."""

    def run(*objects: dict[str, Any], words: tuple[str, ...] = ()) -> tuple[int, str, str]:
        file = tmp_path / "file.yaml"
        file.write_text("\n---\n".join(map(json.dumps, objects)), "utf-8")
        return typing("schedule", "next", "-f", str(file), *words)

    return run


@pytest.fixture
def seen(asked):
    """Type a line, and give the objects that come of it."""

    def run(*objects: dict[str, Any], words: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        code, out, err = asked(*objects, words=("-o", "json", *words))
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


class TestNotes:
    @pytest.mark.parametrize(
        ("obj", "notes", "at_once"),
        [
            (cronjob(), [MADE_UP], None),
            (
                cronjob(startingDeadlineSeconds=90, concurrencyPolicy="Replace"),
                [
                    "A start that was missed is made within 1m 30s; of several only the newest.",
                    "A start deletes the Job that still runs (Replace).",
                ],
                None,
            ),
            (
                cronjob(startingDeadlineSeconds=0),
                [
                    (
                        "Nothing ever starts: startingDeadlineSeconds is 0, and every start is late"
                        " by then."
                    )
                ],
                None,
            ),
            (
                cronjob(concurrencyPolicy="Forbid"),
                [
                    MADE_UP,
                    (
                        "A start waits while an earlier Job runs (Forbid), and is missed if the"
                        " next one comes before that has ended."
                    ),
                ],
                None,
            ),
            (
                cronjob(last="2026-03-02T08:00:00Z"),
                [f"{SINCE}that of 2026-03-02T10:00:00Z is made at once.", MADE_UP],
                "2026-03-02T10:00:00Z",
            ),
            (
                cronjob(last="2026-03-02T08:00:00Z", suspend=True),
                [
                    f"{SINCE}that of 2026-03-02T10:00:00Z is made when suspend is taken away.",
                    "It is suspended: none of them is made.",
                    MADE_UP,
                ],
                None,
            ),
            (
                cronjob(last="2026-03-02T08:00:00Z", startingDeadlineSeconds=300),
                [
                    (
                        f"{SINCE}the deadline of that of 2026-03-02T10:00:00Z has passed, so none"
                        " is made."
                    ),
                    "A start that was missed is made within 5m; of several only the newest.",
                ],
                None,
            ),
            (
                cronjob(last="2026-03-03T08:00:00Z"),
                [
                    (
                        "status.lastScheduleTime 2026-03-03T08:00:00Z is later than now, so it"
                        " records no start."
                    ),
                    MADE_UP,
                ],
                None,
            ),
        ],
        ids=[
            "no deadline", "a deadline", "a deadline of 0", "Forbid", "missed", "missed, suspended",
            "missed, too late", "a record ahead of now",
        ],
    )  # fmt: skip
    def test_deadline_policy_and_missed_starts_are_explained(self, seen, obj, notes, at_once):
        [found] = seen(obj)

        assert (found["notes"], found.get("madeAtOnce")) == (notes, at_once)

    def test_what_kubernetes_runs_may_differ_where_the_clocks_change(self, seen):
        late = {"schedule": "30 2 * * *", "timeZone": "Europe/Berlin"}
        ours, theirs, steady = seen(
            cronjob(**late), cronjob(THEIRS, **late), cronjob(THEIRS), words=("--count", "40")
        )

        assert [one["notes"][-1].startswith("The controller of Kub") for one in (ours, theirs)] == [
            False,
            True,
        ]
        assert steady["notes"] == [MADE_UP]
        assert [one["skippedBefore"] for one in theirs["starts"] if one["skippedBefore"]] == [
            ["2026-03-29T02:30:00"]
        ]


class TestFiles:
    def test_each_object_with_a_schedule_is_shown_in_its_zone(self, asked):
        domain = "ars.44smkn.github.io/"
        notes = {"scale-out": "0 8 * * *", "scale-in": "0 18 * * *", "scale-out-replicas": 10}
        web = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "annotations": {domain + k: v for k, v in notes.items()}},
            "spec": {"replicas": 2},
        }
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
        tokyo = cronjob(timeZone="Asia/Tokyo")
        words = ("--count", "1", "--from", "2026-03-02")

        code, out, err = asked(tokyo, service, web, words=words)

        assert (code, err) == (0, "")
        assert [" ".join(line.split()) for line in out.splitlines()] == [
            "CronJob/demo: '0 * * * *' in Asia/Tokyo",
            "local (Asia/Tokyo) UTC in",
            "Mon 2026-03-02 01:00:00 JST +09:00 2026-03-01T16:00:00Z 1h",
            MADE_UP,
            "",
            "Deployment/web: windows in UTC, which set Deployment/web: spec.replicas",
            "from (UTC) UTC what sets",
            "Sun 2026-03-01 18:00:00 UTC +00:00 2026-03-01T18:00:00Z no window 2, as before",
        ]

    @pytest.mark.parametrize(
        ("obj", "why"),
        [
            (cronjob(schedule="* * * *"), "CronJob/demo: schedule '* * * *': it takes 5 fields"),
            (cronjob(schedule=5), "it must be a string: quote it"),
            (cronjob(timeZone="Mars"), "time zone 'Mars': the IANA database has none"),
            ({"apiVersion": "v1", "kind": "Service"}, "file.yaml has a schedule"),
        ],
    )
    def test_what_cannot_be_read_is_one_line(self, asked, obj, why):
        code, out, err = asked(obj)

        assert (code, out, err.count("\n")) == (2, "", 1)
        assert why in err


@pytest.mark.parametrize(
    ("words", "zone"),
    [
        (("cronjob/demo",), "UTC"),
        (("cj", "demo"), "UTC"),
        (("cronjobs.batch", "demo"), "Asia/Tokyo"),
        (("cronjob/other",), "Asia/Tokyo"),
    ],
)
def test_of_two_kinds_in_the_cluster_ours_is_meant_first(server, typing, words, zone):
    server.store.serve(ServedKind(ApiResource(THEIRS, "CronJob", "cronjobs"), {}))
    server.store.put(cronjob())
    for name in ("demo", "other"):
        theirs = cronjob(THEIRS, timeZone="Asia/Tokyo")
        server.store.put(theirs | {"metadata": {"name": name, "namespace": "shop"}})

    code, out, err = typing("schedule", "next", *words, "-n", "shop")

    assert (code, err) == (0, "")
    assert out.startswith(f"CronJob/{words[-1].rpartition('/')[2]}: '0 * * * *' in {zone}\n")
