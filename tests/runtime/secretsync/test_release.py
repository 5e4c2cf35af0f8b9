"""`hedgerow release` and `adopt` after secretsync, on the cluster in memory."""

from __future__ import annotations

import anyio
import pytest

from hedgerow.cli import main
from hedgerow.kube import client
from runtime.secretsync.syncing import TYPE, Syncing, coded
from support.server.apiserver import Act, ApiServer, Exchange, Reply, refusal
from support.server.connected import connect

MARKER = "pl4nted-m4rker"
ALL = ("release", "--controller", "secretsync", "--yes")


@pytest.fixture
def sync() -> Syncing:
    """Two sources, of which one has a conflict to tell, and the operator stopped."""
    sync = Syncing("team-a", "team-b")

    async def synced() -> None:
        sync.source("app", {"password": MARKER})
        sync.put("told", "team-b", {"password": "theirs"})
        sync.source("told", {"password": MARKER})
        await sync.settle()

    anyio.run(synced)
    return sync


@pytest.fixture
def typed(sync, monkeypatch, capsys):
    """Type a line; `refuse` has applies in a namespace refused, with a secret in the words."""
    server = ApiServer(latency=0, model=sync.server)
    monkeypatch.setattr(client, "connect", connect(server))

    def run(*words: str, command: tuple[str, ...] = ALL) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main((*command, *words))
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out + shown.err

    def refuse(namespace: str, *dry_run: bool) -> None:
        told = refusal(422, "Invalid", f"weak: {MARKER}, {coded(MARKER)}")

        def answer(exchange: Exchange, act: Act) -> Reply:
            is_refused = exchange.namespace == namespace and exchange.dry_run in dry_run
            return told if is_refused else act()

        server.refuse("Secret", answer)

    run.refuse = refuse
    return run


class TestRelease:
    def test_copies_stay_as_they_are_unless_they_are_dropped(self, sync, typed):
        code, told = typed()
        assert code == 3
        assert sync.data("app", "team-a") == {"password": coded(MARKER)}

        code, told = typed("--drop")
        assert (code, told.count("failed")) == (0, 0)
        live = sync.get("app", "team-a")
        assert live is not None
        assert live.get("data", {}) == {}
        assert live["type"] == TYPE
        assert not live["metadata"].get("ownerReferences")

        sync.restart()
        anyio.run(sync.settle)
        assert "NameTaken" in sync.told("app")

    def test_they_can_be_handed_over(self, sync, typed):
        code, told = typed("--to", "admin")

        assert (code, told.count("failed")) == (0, 0)
        assert sync.data("app", "team-a") == {"password": coded(MARKER)}

    @pytest.mark.parametrize("words", [(), ("--drop",), ("--to", "admin")], ids=str)
    @pytest.mark.parametrize("output", ["text", "json"])
    def test_no_value_is_shown_nor_what_a_server_says_of_one(self, typed, words, output):
        typed.refuse("team-a", False)
        _, told = typed(*words, "-o", output)

        assert "team-a" in told
        assert MARKER not in told
        assert coded(MARKER) not in told

    def test_nor_of_one_copy(self, sync, typed):
        typed.refuse("team-a", False, True)
        one = ("release", "secret/app", "-n", "team-a", "--to", "admin")
        code, told = typed("--field", ".data.password", command=one)

        assert code != 0
        assert "failed" in told
        assert MARKER not in told
        assert coded(MARKER) not in told

    def test_nor_of_what_is_adopted(self, sync, typed):
        sync.put("told", "team-b", {"password": MARKER})
        typed.refuse("team-b", False, True)
        one = ("adopt", "secret/told", "-n", "team-b", "--to", "admin", "--from", "somebody")
        code, told = typed(command=one)

        assert code != 0
        assert "failed" in told
        assert MARKER not in told
        assert coded(MARKER) not in told
