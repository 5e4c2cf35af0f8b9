"""Compatibility: nothing that the last release promised is gone, or refuses what was right."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from compatibility.__main__ import recorded, written
from compatibility.breaks import breaks
from compatibility.surface import described, stripped, surface
from hedgerow.encoding import decode

CALL = "positional or keyword"
KEYWORD = "keyword-only"
SCHEMA = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 5},
        "mode": {"type": "string", "enum": ["A", "B"]},
        "name": {"type": "string", "pattern": "a"},
        "list": {"type": "array", "items": {"type": "string"}},
    },
}
BEFORE: dict[str, Any] = {
    "library": {
        "f": {"parameters": {"a": f"{CALL}, required", "b": CALL}},
        "C": {"parameters": {}, "members": {"m": {"x": f"{CALL}, required"}, "n": {}}},
    },
    "fixtures": ["kube"],
    "commands": {"tree": {"--all": "flag", "-o": "=json =text", "target": "required"}},
    "settings": {"log": "LOG"},
    "exits": {"DONE": 0},
    "definitions": {
        "d": {"scope": "Namespaced", "names": ["kind: D"], "versions": {"v1": True}},
    },
    "accepted": {"d v1": SCHEMA},
    "reported": {"audit": deepcopy(SCHEMA)},
    "names": ["metric m"],
}


class TestThisCheckout:
    def test_breaks_nothing_of_the_last_release(self):
        """A break that is meant waits for a version that may have it (see the policy)."""
        assert breaks(recorded(), surface()) == []

    def test_a_record_is_read_as_it_was_written(self):
        now = surface()

        assert decode(written(now).encode()) == now

    def test_the_record_has_something_of_everything(self):
        found = recorded()

        assert all(found[key] for key in BEFORE)
        assert {"positional or keyword, required"} <= set(
            found["library"]["hedgerow.run"]["parameters"].values()
        )
        assert "--yes" in found["commands"]["hedgerow adopt"]


def at(*path: str, value: Any = None) -> dict[str, Any]:
    """Return the surface with something else at a path, or without what is there."""
    changed = deepcopy(BEFORE)
    where: Any = changed
    for part in path[:-1]:
        where = where[part]
    if value is None:
        where.remove(path[-1]) if isinstance(where, list) else where.pop(path[-1])
    else:
        where[path[-1]] = value
    return changed


PROPERTIES = ("accepted", "d v1", "properties")
PARAMETERS = ("library", "f", "parameters")


class TestBreaks:
    @pytest.mark.parametrize(
        ("after", "told"),
        [
            (at("library", "f"), "public name is gone: f"),
            (at(*PARAMETERS, "b"), "f takes no b any more"),
            (at(*PARAMETERS, "c", value=f"{CALL}, required"), "f now requires c"),
            (at(*PARAMETERS, "b", value=f"{CALL}, required"), "f now requires b"),
            (at(*PARAMETERS, "b", value=KEYWORD), "f takes b as a keyword only"),
            (
                at("library", "f", "parameters", value={"b": CALL, "a": CALL}),
                "f takes its parameters in another order",
            ),
            (at("library", "C", "members", "n"), "member of C is gone: n"),
            (
                at("library", "C", "members", "m", "y", value=f"{KEYWORD}, required"),
                "C.m now requi",
            ),
            (at("fixtures", "kube"), "fixture is gone: kube"),
            (at("commands", "tree"), "command is gone: tree"),
            (at("commands", "tree", "--all"), "option of tree is gone: --all"),
            (at("commands", "tree", "--new", value="required"), "tree now requires --new"),
            (at("commands", "tree", "--all", value=""), "tree --all takes a value now"),
            (at("commands", "tree", "-o", value="=text =yaml"), "tree -o takes no json any more"),
            (at("settings", "log", value="LOGS"), "setting log is LOGS and was LOG"),
            (at("exits", "DONE", value=1), "exit code DONE is 1 and was 0"),
            (at("definitions", "d", "names", "kind: D"), "name of d is gone: kind: D"),
            (at("definitions", "d", "versions", "v1", value=False), "v1 is False and was True"),
            (at("definitions", "d", "scope", value="Cluster"), "scope is Cluster and was Name"),
            (at(*PROPERTIES, "list"), "field of d v1 is gone: .list"),
            (at(*PROPERTIES, "list", "items"), "field of d v1 is gone: .list[]"),
            (at(*PROPERTIES, "size", "type", value="number"), ".size: type is number and was int"),
            (at(*PROPERTIES, "size", "minimum", value=1), ".size: minimum is 1 and was 0"),
            (at(*PROPERTIES, "size", "maximum", value=4), ".size: maximum is 4 and was 5"),
            (at(*PROPERTIES, "name", "maxLength", value=4), ".name: maxLength is 4 and was None"),
            (at(*PROPERTIES, "name", "pattern", value="b"), ".name: pattern is b and was a"),
            (at(*PROPERTIES, "name", "enum", value=["a"]), ".name: its values are limited now"),
            (at(*PROPERTIES, "mode", "enum", "B"), ".mode: accepted value is gone: B"),
            (at(*PROPERTIES, "mode", "default", value="A"), ".mode: default is A and was None"),
            (at("accepted", "d v1", "required", value=["mode", "size"]), ".: new required: mode"),
            (
                at("accepted", "d v1", "x-kubernetes-validations", value=["x"]),
                ".: new x-kubernetes-validations: x",
            ),
            (at("reported", "audit", "properties", "name"), "field of audit is gone: .name"),
            (at("reported", "audit", "required"), "field that was always there is gone: size"),
            (at("names", "metric m"), "name is gone: metric m"),
        ],
    )
    def test_what_somebody_would_miss_or_be_refused_is_told(self, after, told):
        [found] = breaks(BEFORE, after)

        assert told in found

    @pytest.mark.parametrize(
        "after",
        [
            at("library", "g", value={}),
            at(*PARAMETERS, "c", value=KEYWORD),
            at(*PARAMETERS, "a", value=CALL),
            at("library", "f", "parameters", value={"all": "variadic positional"}),
            at("library", "C", "members", "o", value={}),
            at("commands", "tree", "--new", value=""),
            at("commands", "tree", "target", value=""),
            at("commands", "tree", "-o", value="=json =text =yaml"),
            at("commands", "tree", "-o", value=""),
            at("definitions", "d", "versions", "v2", value=True),
            at(*PROPERTIES, "new", value={"type": "string"}),
            at(*PROPERTIES, "size", "minimum", value=-1),
            at(*PROPERTIES, "size", "maximum"),
            at(*PROPERTIES, "name", "pattern"),
            at(*PROPERTIES, "mode", "enum", value=["A", "B", "C"]),
            at(*PROPERTIES, "mode", "enum"),
            at("accepted", "d v1", "required"),
            at("reported", "audit", "properties", "mode", "enum", value=["A"]),
            at("reported", "audit", "required", value=["mode", "size"]),
        ],
    )
    def test_what_is_new_or_wider_is_none(self, after):
        assert breaks(BEFORE, after) == []


class TestSurface:
    def test_a_class_has_what_it_gets_from_ours_and_nothing_of_others(self):
        class Base(Exception):
            known: int

            def method(self, one: int, *more: int, two: str = "") -> None: ...

            @classmethod
            def made(cls, of: int) -> None: ...

            def _private(self) -> None: ...

        Base.__module__ = "hedgerow.somewhere"

        found = described(Base)["members"]

        assert found == {
            "known": {},
            "made": {"of": f"{CALL}, required"},
            "method": {
                "one": f"{CALL}, required",
                "more": "variadic positional",
                "two": KEYWORD,
            },
        }

    def test_references_of_a_schema_are_followed_and_words_left_out(self):
        schema = {
            "definitions": {"x": {"type": "string", "description": "Words."}},
            "properties": {"a": {"$ref": "#/definitions/x"}},
        }

        assert stripped(schema) == {"properties": {"a": {"type": "string"}}}
