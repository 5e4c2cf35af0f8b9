"""Superposing: the variants of an object, as one object with conditions.

Each variant is the object under one condition of a template, such as a chosen controller.
Several conditions may be true. Then the parts of their variants stand beside each other: keys of
maps, items of lists, and the alternatives of an expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from hedgerow.deploy.admission_policies import either
from hedgerow.deploy.helm.template import Only, Text, escaped
from hedgerow.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hedgerow_schemas.base import Object

_OR, _NONE = " || ", either(())


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of the variants; with `one_is_true`, at least one of them is true."""

    every: tuple[str, ...]
    one_is_true: bool = True

    def any_of(self, these: Iterable[str]) -> str:
        """Return the condition that any of these is true; empty if that is always so."""
        held = list(these)
        if self.one_is_true and len(held) == len(self.every):
            return ""
        return held[0] if len(held) == 1 else f"or {' '.join(held)}"


def superposed(variants: Mapping[str, Any], together: Any, conditions: Conditions) -> Any:
    """Return one value with conditions, for whichever of them are true.

    `together` is the value if all are: its keys, items and alternatives tell their order. Raises
    ValueError for a difference that cannot be expressed.
    """
    if all(variant == together for variant in variants.values()):
        return together
    match together:
        case dict():
            return _keys(variants, cast("Object", together), conditions)
        case list() | tuple():
            return _items(variants, cast("list[Any]", together), conditions)
        case str():
            return _text(cast("Mapping[str, str]", variants), together, conditions)
        case _:
            raise ValueError(f"{together!r} differs between variants")


def _only(
    variants: Mapping[str, Any], having: Mapping[str, Any], together: Any, conditions: Conditions
) -> Any:
    made = superposed(having, together, conditions)
    condition = _condition(variants, having, conditions)
    return Only(condition, made) if condition else made


def _keys(variants: Mapping[str, Object], together: Object, conditions: Conditions) -> Object:
    if odd := {key for variant in variants.values() for key in variant} - together.keys():
        raise ValueError(f"keys of single variants only: {', '.join(sorted(odd))}")
    return {
        key: _only(
            variants,
            {condition: variant[key] for condition, variant in variants.items() if key in variant},
            value,
            conditions,
        )
        for key, value in together.items()
    }


def _items(
    variants: Mapping[str, Sequence[Any]], together: Sequence[Any], conditions: Conditions
) -> list[Any]:
    """Return a list of all items; RBAC rules, which are folded together, are those of variants."""
    lists = (together, *variants.values())
    known_by = _name if all(_differ(map(_name, items)) for items in lists) else _whole
    order = {known_by(item): item for item in together}
    named = {
        condition: {known_by(item): item for item in items} for condition, items in variants.items()
    }
    for items in named.values():
        order = {**order, **{key: item for key, item in items.items() if key not in order}}
    merged: list[Any] = []
    for key, item in order.items():
        having = {condition: items[key] for condition, items in named.items() if key in items}
        if having:
            merged.append(_only(variants, having, item, conditions))
    return merged


def _differ(names: Iterable[str]) -> bool:
    every = list(names)
    return len(set(every)) == len(every)


def _name(item: Any) -> str:
    """Return the identity of an item of a list, in all variants."""
    match item:
        case {"kind": str(kind), "metadata": {"name": str(name), **rest}}:
            return f"{kind} {rest.get('namespace')}/{name}"
        case {"name": str(known)} | {"message": str(known)}:
            return known
        case {"operations": _, "apiGroups": groups}:
            return encode(groups).decode()
        case _:
            return _whole(item)


def _whole(item: Any) -> str:
    return encode(item).decode()


def _text(variants: Mapping[str, str], together: str, conditions: Conditions) -> Text:
    """Return a text whose alternatives, between `||`, are those of the conditions that are true."""
    return (
        _without_parentheses(variants, together, conditions)
        or _in_parentheses(variants, together, conditions)
        or _one_or_the_other(variants, together, conditions)
    )


def _without_parentheses(
    variants: Mapping[str, str], together: str, conditions: Conditions
) -> Text | None:
    """Return a text `a || b || c` that always has its first alternatives; None for others."""
    parts = together.split(_OR)
    having = _having({key: text.split(_OR) for key, text in variants.items()}, parts)
    if having is None or len(having[0]) < len(variants):
        return None
    text = "".join(
        _if(_condition(variants, those, conditions), (_OR if place else "") + escaped(part))
        for place, (part, those) in enumerate(zip(parts, having, strict=True))
    )
    return Text(text)


def _in_parentheses(
    variants: Mapping[str, str], together: str, conditions: Conditions
) -> Text | None:
    """Return a text with `(a) || (b)` somewhere in it, whose first may be absent; or None."""
    texts = (together, *variants.values())
    same = next(i for i in range(len(together) + 1) if len({text[: i + 1] for text in texts}) > 1)
    for start in (place for place in range(same, -1, -1) if together.startswith("(", place)):
        parts, rest = _alternatives(together, start)
        given = {key: _alternatives(text, start) for key, text in variants.items()}
        having = _having({key: those for key, (those, _) in given.items()}, parts)
        alone = [those for those, _ in given.values()]
        if having is not None and {tail for _, tail in given.values()} == {rest}:
            return Text(
                f'{escaped(together[:start])}{{{{ $or := "" -}}}}\n'
                + "".join(
                    _if(
                        _condition(variants, those, conditions),
                        f'{{{{ $or }}}}{escaped(part)}{{{{ $or = "{_OR}" }}}}',
                    )
                    + '{{- "" -}}\n'
                    for part, those in zip(parts, having, strict=True)
                )
                + (f"{{{{ if not $or }}}}{_NONE}{{{{ end -}}}}\n" if [] in alone else "")
                + escaped(rest)
            )
    return None


def _one_or_the_other(variants: Mapping[str, str], together: str, conditions: Conditions) -> Text:
    """Return one text if a condition is true for which it is so, and otherwise the other."""
    others = {text for text in variants.values() if text != together}
    having = [condition for condition, text in variants.items() if text == together]
    if len(others) != 1 or not having:
        raise ValueError(f"no condition tells when it is {together!r}")
    condition = conditions.any_of(having)
    [other] = others
    return Text(
        f"{{{{ if {condition} }}}}{escaped(together)}{{{{ else }}}}{escaped(other)}{{{{ end }}}}"
    )


def _having(variants: Mapping[str, Sequence[str]], parts: Sequence[str]) -> list[list[str]] | None:
    """Return for each part the conditions whose variant has it; None if one has other parts."""
    if any(list(those) != [part for part in parts if part in those] for those in variants.values()):
        return None
    return [[key for key, those in variants.items() if part in those] for part in parts]


def _alternatives(text: str, start: int) -> tuple[list[str], str]:
    """Return the parts `(a)`, `(b)` of `(a) || (b)` from a position on, and the rest."""
    parts: list[str] = []
    if text.startswith(_NONE, start):
        return parts, text[start + len(_NONE) :]
    while text.startswith("(", start):
        depth, end = 1, start + 1
        while depth and end < len(text):
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        parts.append(text[start:end])
        if not text.startswith(f"{_OR}(", end):
            return parts, text[end:]
        start = end + len(_OR)
    return parts, text[start:]


def _condition(variants: Mapping[str, Any], these: Collection[str], conditions: Conditions) -> str:
    """Return the condition for a part that only these variants have; empty if all have it."""
    return "" if len(these) == len(variants) else conditions.any_of(these)


def _if(condition: str, text: str) -> str:
    return f"{{{{ if {condition} }}}}{text}{{{{ end }}}}" if condition else text
