"""Concealing: whole objects as people may see them, without the values of Secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.fields.paths import is_map
from hedgerow.fields.redaction import PRIVATE, is_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow_schemas.base import Object


def concealed(live: Object, conceal: Callable[[Any], Any]) -> Object:
    """Return an object with each private value replaced by the result of `conceal`."""
    if not is_secret(str(live.get("kind", ""))):
        return live
    shown = dict(live)
    for *above, name in PRIVATE:
        place: Object | None = shown
        for element in above:
            place = _copied(place, element[2:]) if place else None
        if place:
            _conceal(place, name[2:], conceal)
    return shown


def _copied(place: Object, name: str) -> Object | None:
    """Put a copy in the place of an inner map, and return it; None if there is no such map."""
    inner = place.get(name)
    if not is_map(inner):
        return None
    place[name] = dict(inner)
    return place[name]


def _conceal(place: Object, name: str, conceal: Callable[[Any], Any]) -> None:
    values = place.get(name)
    if is_map(values):
        place[name] = {key: conceal(value) for key, value in values.items()}
    elif values is not None:
        place[name] = conceal(values)
