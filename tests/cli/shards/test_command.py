"""`hedgerow shards`, as typed: what is asked of the cluster and what is printed of its answer."""

from __future__ import annotations

import io
import json
import re
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from cli.grove import Grove
from cli.shards.leases import FIRST, NOW, SECOND, election, member, three
from hedgerow.cli import following
from hedgerow.cli.shards import view
from hedgerow.cli.shards.look import WatchedShards
from hedgerow.cli.shards.report import reported
from hedgerow.kube import client
from hedgerow.kube.errors import Forbidden


class Clock:
    """A clock that stands still."""

    def now(self):
        return NOW


@pytest.fixture
def cluster(monkeypatch) -> Grove:
    grove = Grove(*three())
    grove.acting = "Lease"

    @asynccontextmanager
    async def connect(**given: Any):
        grove.asked.append(given)
        yield grove

    monkeypatch.setattr(client, "connect", connect)
    monkeypatch.setattr(following, "GATHER", 0)
    monkeypatch.setattr(view, "SystemClock", Clock)
    monkeypatch.delenv("COLUMNS", raising=False)
    return grove


@pytest.fixture
def typed(cluster, typing):
    """Type `hedgerow shards …`; give the exit code, standard output and standard error."""
    return partial(typing, "shards")


class TestOnce:
    def test_a_line_for_each_replica_and_the_rest_below(self, typed, cluster):
        code, out, err = typed("--context", "there")

        assert (code, err) == (0, "")
        assert [line.split()[0] for line in out.splitlines() if line] == [
            "REPLICA", "a", "b", "c", "assignment", "a",
        ]  # fmt: skip
        assert cluster.lists == [("Lease", "hedgerow-system", "")]
        assert cluster.asked[0]["context"] == "there"

    def test_programs_get_all_of_it(self, typed):
        code, out, err = typed("-o", "json")

        assert (code, err) == (0, "")
        assert [each["name"] for each in json.loads(out)["replicas"]] == ["a", "b", "c"]

    def test_another_namespace_is_asked_for(self, typed, cluster):
        assert typed("--system-namespace", "other")[0] == 1
        assert cluster.lists == [("Lease", "other", "")]

    @pytest.mark.parametrize("objects", [[], [election()]])
    def test_without_shards_that_is_said_in_a_sentence(self, typed, cluster, objects):
        cluster.objects.clear()
        for obj in objects:
            cluster.put(obj)
        code, out, err = typed()

        assert (code, out) == (1, "")
        assert err.startswith("hedgerow: no replica of hedgerow in namespace hedgerow-system")
        assert err.count("\n") == 1

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("--instance", "X"), "--instance"),
            (("--system-namespace", "A"), "--system-namespace"),
            (("-o", "yaml"), "'yaml'"),
            (("x",), "x"),
        ],
    )
    def test_what_makes_no_sense_is_said_in_a_line(self, typed, cluster, words, told):
        code, out, err = typed(*words)

        assert (code, out, cluster.lists) == (2, "", [])
        assert told in err
        assert err.count("\n") == 1

    def test_who_may_not_read_leases_is_told_so(self, typed, cluster):
        cluster.refusals["Lease"] = Forbidden("you may not list leases")

        code, _, err = typed()

        assert code == 1
        assert err.startswith("hedgerow: you may not list leases; ask for the right")


class TestWatched:
    @pytest.fixture
    def watched(self, typed, cluster):
        def run(meanwhile, *words: str):
            cluster.meanwhile = meanwhile
            return typed("-w", *words)

        return run

    def test_each_change_is_a_line(self, watched, cluster):
        async def meanwhile() -> None:
            await cluster.tell(member("b", SECOND, filled=False))
            await cluster.tell(member("a", FIRST), "DELETED")
            await cluster.mark("Lease")

        code, out, err = watched(meanwhile)

        assert (code, err) == (130, "")
        assert re.sub(r"2026-01-01T12:00:00Z ", "", out).splitlines() == [
            "a: serves, 1 (33%)",
            "b: serves, 1 (33%)",
            "c: serves, 1 (33%)",
            "unserved: 0 (0%)",
            "b: fills its caches, 1 (33%)",
            "a: gone",
            "unserved: 1 (33%)",
        ]

    def test_as_json_each_change_is_a_line_of_it(self, watched, cluster):
        async def meanwhile() -> None:
            await cluster.tell(member("b", SECOND))
            await cluster.tell(member("b", SECOND, leaving=True))

        code, out, _ = watched(meanwhile, "-o", "json")

        assert code == 130
        assert [json.loads(line)["replicas"][1]["state"] for line in out.splitlines()] == [
            "serves", "leaves",
        ]  # fmt: skip

    def test_on_a_terminal_the_table_is_drawn_again_in_place(self, watched, cluster, monkeypatch):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")

        async def meanwhile() -> None:
            await cluster.tell(member("b", SECOND, leaving=True))

        code, out, err = watched(meanwhile)

        assert (code, err) == (130, "")
        assert out.count("REPLICA") > 1
        assert "- leaves" in out


class OutOfDate(WatchedShards):
    problem = "no more \x1b"

    def __init__(self) -> None:
        pass

    def report(self, now):
        return reported(three(), "hedgerow", now)


class TestOutOfDate:
    def test_it_is_said_once(self, capsys):
        shown = following.AppendedLines(view.ShardsView(OutOfDate(), Clock()))
        shown.draw()
        shown.draw()

        assert capsys.readouterr().err == "hedgerow: may be out of date: no more \\u001b\n"

    def test_it_is_part_of_the_picture(self):
        paper = io.StringIO()
        console = Console(file=paper, width=80, height=20, force_terminal=True)
        with Live(console=console, auto_refresh=False) as picture:
            following.Picture(view.ShardsView(OutOfDate(), Clock()), picture).draw()

        assert "may be out of date: no more \\u001b" in paper.getvalue()
