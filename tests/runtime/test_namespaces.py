"""Which namespaces are going."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.kube import errors
from hedgerow.kube.watch import Bookmark, Changed
from hedgerow.runtime.namespaces import Namespaces, reduced
from hedgerow.testing.virtual import VirtualClock

pytestmark = pytest.mark.anyio

Object = dict[str, Any]


def namespace(name: str, version: int, *, going: bool = False) -> Object:
    meta: Object = {"name": name, "resourceVersion": str(version), "labels": {"a": "b"}}
    if going:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": {"finalizers": ["kubernetes"]}}


def changed(kind: Any, name: str, version: int, *, going: bool = False) -> Changed:
    return Changed(kind, namespace(name, version, going=going), str(version))


class Script:
    """A cluster whose watch of namespaces tells what the test wrote."""

    def __init__(self, *events: Any) -> None:
        self.events = list(events)

    async def watch(self, *_: Any, **__: Any) -> Any:
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event
        await anyio.sleep_forever()


class Read:
    """A cluster that gives what the test wrote for each name, then the last of it for ever."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self.answers = answers

    async def read(self, _api: Any, name: str) -> Any:
        left = self.answers[name]
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        return found


def claiming(name: str, version: int, kind: Any = "ADDED") -> Changed:
    obj = namespace(name, version)
    obj["metadata"]["labels"]["hedgerow.dev/allow-claims"] = "true"
    return Changed(kind, obj, str(version))


async def told(*events: Any) -> Namespaces:
    found = Namespaces()
    with anyio.move_on_after(1):
        await found.follow(cast("Any", Script(*events)))
    return found


SYNCED = Bookmark("2", synced=True)


class TestNamespaces:
    async def test_those_that_go_already_are_known_from_the_start(self):
        found = await told(changed("ADDED", "a", 1, going=True), changed("ADDED", "b", 2), SYNCED)

        assert (found.is_terminating("a"), found.is_terminating("b")) == (True, False)

    async def test_all_there_are_are_known_by_name(self):
        found = await told(
            changed("ADDED", "a", 1),
            SYNCED,
            changed("ADDED", "b", 3),
            changed("MODIFIED", "b", 4, going=True),
            changed("DELETED", "a", 5),
        )

        assert found.names == {"b"}

    async def test_one_that_begins_to_go_is_known_until_it_is_gone(self):
        begins = changed("MODIFIED", "b", 3, going=True)

        assert (await told(SYNCED, begins)).is_terminating("b")
        gone = changed("DELETED", "b", 4, going=True)
        assert not (await told(SYNCED, begins, Bookmark("4"), gone)).is_terminating("b")

    async def test_one_of_the_same_name_made_anew_is_not_going(self):
        begins, anew = changed("MODIFIED", "b", 3, going=True), changed("MODIFIED", "b", 5)

        assert not (await told(SYNCED, begins, anew)).is_terminating("b")

    async def test_those_that_allow_claims_are_known_as_their_label_comes_and_goes(self):
        named, other = claiming("a", 1), changed("ADDED", "b", 2)
        found = await told(named, other, SYNCED)

        assert (found.allows_claims("a"), found.allows_claims("b")) == (True, False)
        assert not (await told(named, SYNCED, changed("MODIFIED", "a", 3))).allows_claims("a")
        gone = Changed("DELETED", claiming("a", 3).object, "3")
        assert not (await told(named, SYNCED, gone)).allows_claims("a")
        assert (await told(SYNCED, claiming("c", 3, "MODIFIED"))).allows_claims("c")

    async def test_until_the_first_look_it_is_not_known(self):
        assert Namespaces().allows_claims("a") is None

    async def test_what_changes_is_told_and_nothing_else(self):
        heard: list[list[str]] = []
        found = Namespaces()
        found.changed = lambda names: heard.append(sorted(names))
        events = (
            claiming("a", 1), SYNCED, changed("MODIFIED", "b", 3), claiming("a", 4, "MODIFIED"),
            claiming("b", 5, "MODIFIED"), changed("MODIFIED", "a", 6),
        )  # fmt: skip
        with anyio.move_on_after(1):
            await found.follow(cast("Any", Script(*events)))

        assert heard == [[], ["b"], ["a"]]

    async def test_a_server_that_does_not_answer_leaves_it_open(self):
        found = Namespaces()
        with anyio.move_on_after(1):
            await found.follow(cast("Any", Script(errors.Unreachable("no", sent=False))))

        assert found.allows_claims("a") is None

    async def test_those_it_is_told_of_are_read_now_and_then(self):
        script = Read(
            {"a": [claiming("a", 1).object, errors.Unavailable("down"), None],
             "b": [errors.Forbidden("no", code=403)] * 3}
        )  # fmt: skip
        found, heard = Namespaces(), []
        found.changed = lambda names: heard.append(
            (sorted(names), found.allows_claims("a"), found.allows_claims("b"))
        )
        with anyio.move_on_after(1_000):
            await found.read(cast("Any", script), ("a", "b"), cast("Any", VirtualClock()))

        assert heard == [([], True, False), (["a"], False, False)]

    async def test_without_the_right_to_watch_none_is_going_or_allows_claims_as_is_told_once(self):
        refused = errors.Forbidden("may not watch namespaces", code=403)
        found = Namespaces()
        with capture_logs() as logs, anyio.move_on_after(600):
            await found.follow(cast("Any", Script(refused)))

        assert not found.is_terminating("a")
        assert found.allows_claims("a") is False
        assert [(e["event"], e["log_level"]) for e in logs] == [
            ("namespaces are not watched", "info")
        ]

    def test_of_a_namespace_only_what_is_needed_is_kept(self):
        kept = reduced(namespace("a", 1, going=True))

        assert kept == {
            "metadata": {
                "name": "a",
                "resourceVersion": "1",
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            }
        }
        assert reduced(claiming("a", 1).object)["metadata"]["labels"] == {
            "hedgerow.dev/allow-claims": "true"
        }
        assert "deletionTimestamp" not in reduced(namespace("a", 1))["metadata"]
