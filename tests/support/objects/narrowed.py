"""Narrowed: every way in which a later schema asks more, with what it takes and what it leaves.

The tests in memory and those on the real server walk the same table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.objects import definitions
from support.objects.definitions import KEPT, Schema, free, items, number, of, text

GROUP = "narrowed.hedgerow.example"
INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
LABELS = free()
PAIR = of("name", name=text(), value=text())


def rule(said: str, **more: Any) -> Schema:
    return {"x-kubernetes-validations": [{"rule": said, "message": "told", **more}]}


@dataclass(frozen=True)
class Narrowed:
    """A schema of `.spec.x` and a later one; what `taken` loses or breaks, and what passes.

    Where `pruned`, it is lost; otherwise it is refused, if `lately` by newer servers alone.
    """

    name: str
    before: Schema
    after: Schema
    taken: Any
    passes: list[Any]
    what: str
    pruned: bool = False
    lately: bool = False


def lost(name: str, before: Schema, after: Schema, taken: Any, passes: Any, what: str) -> Narrowed:
    return Narrowed(name, before, after, taken, [passes], f"{what}: would be lost", pruned=True)


WAYS = [
    lost(
        "a field is removed",
        of(a=text(), b=text()), of(a=text()), {"a": "1", "b": "2"}, {"a": "1"}, ".spec.x.b",
    ),
    lost(
        "a field of a list item is removed",
        items(of(a=text(), b=text())), items(of(a=text())), [{"a": "1"}, {"b": "2"}],
        [{"a": "1"}], ".spec.x[*].b",
    ),
    lost(
        "a field of a map's values is removed",
        free(of(a=text(), b=text())),
        free(of(a=text())),
        {"k": {"b": "2"}}, {"k": {"a": "1"}}, ".spec.x.*.b",
    ),
    lost(
        "what was kept unknown is not kept any more",
        {"type": "object", **KEPT}, of(a=text()), {"a": "1", "b": {"c": 1}}, {"a": "1"},
        ".spec.x.b",
    ),
    lost("a free map gets fields", LABELS, of(a=text()), {"b": "2"}, {"a": "1"}, ".spec.x.b"),
    lost(
        "a field below a map that is kept is removed",
        {"type": "object", **KEPT, "properties": {"p": of(a=text(), b=text())}},
        {"type": "object", **KEPT, "properties": {"p": of(a=text())}},
        {"p": {"b": "1"}, "more": 1}, {"p": {"a": "1"}, "b": 2}, ".spec.x.p.b",
    ),
    lost(
        "a field of what is an object by itself is removed",
        {"x-kubernetes-embedded-resource": True, **of(a=text(), b=text())},
        {"x-kubernetes-embedded-resource": True, **of(a=text())},
        {"apiVersion": "v1", "kind": "A", "metadata": {"name": "n"}, "b": "1"},
        {"apiVersion": "v1", "kind": "A", "metadata": {"name": "n", "labels": {"a": "b"}}},
        ".spec.x.b",
    ),
    Narrowed("a type changes", text(), number(), "1", [], ".spec.x: must be of type integer"),
    Narrowed("a number is whole", number("number"), number(), 1.5, [1, 2.0],
             ".spec.x: must be of type integer"),
    Narrowed("a text is no number any more", INT_OR_STRING, text(), 8, ["8"],
             ".spec.x: must be of type string"),
    Narrowed("a number is no text any more", INT_OR_STRING, number(), "8", [8],
             ".spec.x: must be of type integer"),
    Narrowed("what was kept has a type", KEPT, text(), 8, ["a"],
             ".spec.x: must be of type string"),
    Narrowed("a value of a map has another type", LABELS,
             free(number()), {"a": "b"}, [{}],
             ".spec.x.*: must be of type integer"),
    Narrowed("a value has to be one of some", text(), text(enum=["a", "b"]), "c", ["a", "b"],
             '.spec.x: must be one of ["a", "b"]'),
    Narrowed("one of some goes", text(enum=["a", "b"]), text(enum=["b"]), "a", ["b"],
             '.spec.x: must be one of ["b"]'),
    Narrowed("a text has a pattern", text(), text(pattern="^[a-z]+$"), "A1", ["abc"],
             '.spec.x: must match "^[a-z]+$"'),
    Narrowed("a text may not be as long", text(maxLength=9), text(maxLength=3), "four", ["äöü"],
             ".spec.x: must have at most 3 characters"),
    Narrowed("a text may not be as short", text(), text(minLength=3), "ab", ["abc"],
             ".spec.x: must have at least 3 characters"),
    Narrowed("a text has a form", text(), text(format="date-time"), "today",
             ["2026-01-31T12:00:00Z"], '.spec.x: must have the format "date-time"'),
    Narrowed("a number may not be as large", number(maximum=9), number(maximum=3), 4, [3, -1],
             ".spec.x: must be at most 3"),
    Narrowed("a number may not be the largest", number(maximum=3),
             number(maximum=3, exclusiveMaximum=True), 3, [2], ".spec.x: must be less than 3"),
    Narrowed("a number may not be as small", number(), number(minimum=1), 0, [1],
             ".spec.x: must be at least 1"),
    Narrowed("a number has fewer bits", number(format="int64"), number(format="int32"), 2**31,
             [2**31 - 1, -(2**31)], '.spec.x: must have the format "int32"', lately=True),
    Narrowed("a number is one of each five", number(), number(multipleOf=5), 7, [10],
             ".spec.x: must be a multiple of 5"),
    Narrowed("a list may not be as long", items(text()), items(text(), maxItems=1), ["a", "b"],
             [["a"]], ".spec.x: must have at most 1 items"),
    Narrowed("a list may not be empty", items(text()), items(text(), minItems=1), [], [["a"]],
             ".spec.x: must have at least 1 items"),
    Narrowed("a map may not have as much", LABELS, {**LABELS, "maxProperties": 1},
             {"a": "", "b": ""}, [{"a": ""}], ".spec.x: must have at most 1 keys"),
    Narrowed("a map may not be empty", LABELS, {**LABELS, "minProperties": 1}, {}, [{"a": ""}],
             ".spec.x: must have at least 1 keys"),
    Narrowed("a field has to be there", of(a=text()), of("a", a=text()), {}, [{"a": "1"}],
             ".spec.x: a must be set"),
    Narrowed("an item has to have a field", items(of(a=text(), b=text())),
             items(of("b", a=text(), b=text())), [{"a": "1"}], [[{"b": "1"}], []],
             ".spec.x[*]: b must be set"),
    Narrowed("no item twice", items(text()), items(text(), kind="set"),
             ["a", "a"], [["a", "b"]], ".spec.x: must have no item twice"),
    Narrowed("no key twice", items(PAIR),
             items(PAIR, "name"),
             [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}],
             [[{"name": "a"}, {"name": "b"}]], ".spec.x: must have no item twice"),
    Narrowed("a rule is added", text(), text(**rule("self != 'a'")), "a", [],
             ".spec.x: a new rule, which only the API server can try: told"),
    Narrowed("one of several schemas has to fit", text(),
             text(anyOf=[{"maxLength": 2}, {"pattern": "^a"}]), "bcd", [],
             '.spec.x: a new anyOf, which only the API server can try:'
             ' [{"maxLength": 2}, {"pattern": "^a"}]'),
]  # fmt: skip
"""Of what only the API server can try nothing passes: it is told of every object that it is for."""

HARMLESS: list[tuple[str, Schema, Schema, Any]] = [
    ("nothing changes", of(a=text()), of(a=text()), {"a": "1"}),
    ("a field is added", of(a=text()), of(a=text(), b=text()), {"a": "1"}),
    ("a description changes", text(description="one"), text(description="two"), "a"),
    ("what is required has a default", of(a=text()), of("a", a=text(default="d")), {}),
    ("a rule is for new objects", text(),
     text(**rule("oldSelf.hasValue() || (self != 'a')", optionalOldSelf=True)), "a"),
    ("a rule is for changes", text(), text(**rule("self == oldSelf")), "a"),
    ("a bound is wider", number(maximum=3), number(maximum=9), 3),
    ("a free map is kept", LABELS, {"type": "object", **KEPT}, {"a": "b"}),
    ("the fields of a map are free", of(a=text()), LABELS, {"a": "b"}),
    ("a limit is of what is not there", of(a=text()), of(a=text(maxLength=1), b=number()), {}),
]  # fmt: skip
"""What takes nothing of the object that is there."""


def root(schema: Schema) -> Schema:
    return of(spec=of(x=schema), status={"type": "object", **KEPT})


def definition(schema: Schema, *versions: str, group: str = GROUP) -> dict[str, Any]:
    """Return a definition whose versions have this schema of `.spec.x`; the first is stored."""
    return definitions.definition(group, "Thing", root(schema), *versions)
