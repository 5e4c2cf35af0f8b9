"""Breaks: what somebody who relies on a release would miss, or be refused, in what there is now.

What is new breaks nobody, unless it has to be given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Object = dict[str, Any]

BOUNDS = {
    "minimum": 1,
    "minLength": 1,
    "minItems": 1,
    "maximum": -1,
    "maxLength": -1,
    "maxItems": -1,
}
"""What bounds a value, and the direction in which the bound gets tighter."""
STRUCTURE = ("properties", "items", "additionalProperties")
RULES = "x-kubernetes-validations"


def breaks(old: Object, new: Object) -> list[str]:
    """Return the breaks from one surface to another, each as a line."""
    return [
        *_library(old["library"], new["library"]),
        *_missing("fixture", old["fixtures"], new["fixtures"]),
        *_commands(old["commands"], new["commands"]),
        *_changed("setting", old["settings"], new["settings"]),
        *_changed("exit code", old["exits"], new["exits"]),
        *_definitions(old["definitions"], new["definitions"]),
        *_by_name(old["accepted"], new["accepted"], _refused),
        *_by_name(old["reported"], new["reported"], _unsaid),
        *_missing("name", old["names"], new["names"]),
    ]


def _library(old: Object, new: Object) -> Iterator[str]:
    yield from _missing("public name", old, new)
    for name in old.keys() & new.keys():
        yield from _called(name, old[name].get("parameters", {}), new[name].get("parameters", {}))
        before, after = old[name].get("members", {}), new[name].get("members", {})
        yield from _missing(f"member of {name}", before, after)
        for member in before.keys() & after.keys():
            yield from _called(f"{name}.{member}", before[member], after[member])


def _called(name: str, old: Object, new: Object) -> Iterator[str]:
    """Yield what becomes of calls that were right."""
    takes_any = any("variadic" in kind for kind in new.values())
    for parameter in () if takes_any else old.keys() - new.keys():
        yield f"{name} takes no {parameter} any more"
    for parameter, kind in new.items():
        before = old.get(parameter, "")
        if "required" in kind and "required" not in before:
            yield f"{name} now requires {parameter}"
        if before.startswith("positional") and kind.startswith("keyword-only"):
            yield f"{name} takes {parameter} as a keyword only"
    places = [[n for n, kind in one.items() if kind.startswith("positional")] for one in (old, new)]
    common = [n for n in places[0] if n in places[1]]
    if places[1][: len(common)] != common:
        yield f"{name} takes its parameters in another order"


def _commands(old: Object, new: Object) -> Iterator[str]:
    yield from _missing("command", old, new)
    for name in old.keys() & new.keys():
        yield from _missing(f"option of {name}", old[name], new[name])
        for option, kind in new[name].items():
            before, after = set(old[name].get(option, "").split()), set(kind.split())
            if "required" in after - before:
                yield f"{name} now requires {option}"
            if option in old[name] and ("flag" in before) != ("flag" in after):
                yield f"{name} {option} takes {'no' if 'flag' in after else 'a'} value now"
            chosen = {word for word in before - after if word.startswith("=")}
            for choice in sorted(chosen if any(word.startswith("=") for word in after) else ()):
                yield f"{name} {option} takes no {choice[1:]} any more"


def _definitions(old: Object, new: Object) -> Iterator[str]:
    yield from _missing("definition", old, new)
    for name in old.keys() & new.keys():
        yield from _missing(f"name of {name}", old[name]["names"], new[name]["names"])
        yield from _changed(f"version of {name}", old[name]["versions"], new[name]["versions"])
        yield from _changed(name, {"scope": old[name]["scope"]}, {"scope": new[name]["scope"]})


def _by_name(old: Object, new: Object, compare: Any) -> Iterator[str]:
    yield from _missing("schema", old, new)
    for name in sorted(old.keys() & new.keys()):
        before, after = fields(old[name]), fields(new[name])
        yield from _missing(f"field of {name}", _outermost(before.keys() - after.keys()), ())
        for path in before.keys() & after.keys():
            for problem in compare(before[path], after[path]):
                yield f"{name}: {path}: {problem}"


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are below no other one."""
    found: list[str] = []
    for path in sorted(paths):
        if not (found and path.startswith(tuple(f"{found[-1]}{sign}" for sign in ".[{"))):
            found.append(path)
    return found


def fields(schema: Object, path: str = "") -> Object:
    """Return the schema of each field, by its path."""
    found = {path or ".": {k: value for k, value in schema.items() if k not in STRUCTURE}}
    for name, below in schema.get("properties", {}).items():
        found |= fields(below, f"{path}.{name}")
    for key, sign in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            found |= fields(schema[key], f"{path}{sign}")
    return found


def _refused(old: Object, new: Object) -> Iterator[str]:
    """Yield why a schema may refuse what it accepted, or mean something else by it."""
    yield from _missing(
        "accepted value", _values(old), _values(new) if "enum" in new else _values(old)
    )
    for key in ("required", RULES):
        if added := set(new.get(key, ())) - set(old.get(key, ())):
            yield f"new {key}: {', '.join(sorted(added))}"
    for key, direction in BOUNDS.items():
        before, after = old.get(key), new.get(key)
        if after is not None and (before is None or (after - before) * direction > 0):
            yield f"{key} is {after} and was {before}"
    if "enum" in new and "enum" not in old:
        yield "its values are limited now"
    others = (old.keys() | new.keys()) - BOUNDS.keys() - {"required", RULES, "enum"}
    for key in sorted(others - ({"pattern"} - new.keys())):
        if old.get(key) != new.get(key):
            yield f"{key} is {new.get(key)} and was {old.get(key)}"


def _unsaid(old: Object, new: Object) -> Iterator[str]:
    """Yield what a reader of a report would miss. Values may be added."""
    yield from _missing(
        "field that was always there", old.get("required", ()), new.get("required", ())
    )
    for key in ("type", "const"):
        if old.get(key) != new.get(key):
            yield f"{key} is {new.get(key)} and was {old.get(key)}"


def _values(schema: Object) -> list[str]:
    return [str(value) for value in schema.get("enum", ())]


def _changed(what: str, old: Object, new: Object) -> Iterator[str]:
    yield from _missing(what, old, new)
    for name in old.keys() & new.keys():
        if old[name] != new[name]:
            yield f"{what} {name} is {new[name]} and was {old[name]}"


def _missing(what: str, old: Any, new: Any) -> Iterator[str]:
    for name in sorted(set(old) - set(new)):
        yield f"{what} is gone: {name}"
