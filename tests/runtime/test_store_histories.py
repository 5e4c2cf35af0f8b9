"""The store, fed by a generated history: watch, answers and lists in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hedgerow.runtime.cache.store import Store, key_of
from runtime.things import Object, contents, owners, replaced, thing


@dataclass
class Server:
    """Versions and a log, told in any order: no API server tells of them like this."""

    version: int = 0
    objects: dict[str, Object] = field(default_factory=dict)
    log: list[tuple[str, Object]] = field(default_factory=list)

    def write(self, name: str, owner: str) -> Object:
        self.version += 1
        old = self.objects.get(name)
        uid = old["metadata"]["uid"] if old else f"u{self.version}"
        self.objects[name] = thing(name, self.version, uid, owner)
        self.log.append(("PUT", self.objects[name]))
        return self.objects[name]

    def delete(self, name: str) -> None:
        if name in self.objects:
            self.version += 1
            last = self.objects.pop(name)["metadata"]
            self.log.append(("DELETED", thing(name, self.version, last["uid"])))


names, values = st.sampled_from(["a", "b"]), st.sampled_from(["", "x", "y"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("foreign write"), names, values),
        st.tuples(st.just("our write"), names, values),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("event")),
        st.tuples(st.just("answer"), st.integers(0, 5)),
        st.tuples(st.just("list")),
        st.tuples(st.just("list arrives")),
        st.tuples(st.just("bookmark")),
        st.tuples(st.just("gone"), names),
    ),
    max_size=40,
)


class History:
    """Carries the steps out; each method is one step."""

    def __init__(self) -> None:
        self.server, self.store = Server(), Store({"owner": owners})
        self.told = 0
        self.answers: list[Object] = []
        self.listed: tuple[list[Object], int, int] | None = None

    def foreign_write(self, name: str, value: str) -> None:
        self.server.write(name, value)

    def our_write(self, name: str, value: str) -> None:
        self.answers.append(self.server.write(name, value))

    def delete(self, name: str) -> None:
        self.server.delete(name)

    def event(self) -> None:
        # While a list is on its way, the watch that it replaces is closed.
        if self.listed is None and self.told < len(self.server.log):
            kind, obj = self.server.log[self.told]
            self.told += 1
            before = self.store.get(key_of(obj))
            change = self.store.remove(obj) if kind == "DELETED" else self.store.put(obj)
            after = self.store.get(key_of(obj))
            assert change == (None if before is after else (before, after))

    def answer(self, which: int) -> None:
        if self.answers:
            self.store.absorb(self.answers.pop(which % len(self.answers)))

    def list(self) -> None:
        if self.listed is None:
            items = list(self.server.objects.values())
            self.listed = (items, self.server.version, len(self.server.log))

    def list_arrives(self) -> None:
        if self.listed is None:
            return
        items, version, told = self.listed
        self.listed, self.told = None, told
        before = contents(self.store)
        changes = replaced(self.store, items, str(version))
        after = contents(self.store)
        keys = before.keys() | after.keys()
        differ = [(before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k)]
        assert sorted(changes, key=str) == sorted(differ, key=str)

    def bookmark(self) -> None:
        if self.listed is None and self.told == len(self.server.log):
            self.store.bookmark(str(self.server.version))

    def gone(self, name: str) -> None:
        cached = self.store.get(("ns", name))
        if cached is not None:
            uid = cached["metadata"]["uid"]
            live = self.server.objects.get(name)
            if live is None or live["metadata"]["uid"] != uid:
                self.store.forget_object(("ns", name), uid)

    def check_indices(self) -> None:
        filed: dict[Any, set[Any]] = {}
        for key, obj in contents(self.store).items():
            for value in owners(obj):
                filed.setdefault(value, set()).add(key)
        assert self.store._indices.keys == {"owner": filed}

    def settle(self) -> None:
        self.list_arrives()
        while self.told < len(self.server.log):
            self.event()
        while self.answers:
            self.answer(0)


class TestAnyHistory:
    @given(steps)
    def test_watch_answers_and_lists_in_any_order_end_in_the_truth(self, steps):
        history = History()
        for name, *args in steps:
            getattr(history, name.replace(" ", "_"))(*args)
            history.check_indices()
        history.settle()

        truth = {("ns", name): obj for name, obj in history.server.objects.items()}
        assert contents(history.store) == truth
        history.check_indices()
