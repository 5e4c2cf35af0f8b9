"""Refused fields: the declared fields that the server refuses, and the declaration without them."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields.applyconfiguration import extract
from hedgerow.fields.paths import is_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow_schemas.base import Object

Place = tuple[str, ...]
"""Names of fields from the top, such as ("spec", "ports")."""
MOST_CAUSES: Final = 64
"""The most causes of one refusal that are followed."""
SPELLED: Final = {
    "spec.LoadBalancerSourceRanges": "spec.loadBalancerSourceRanges",
    "spec.conversion.conversionReviewVersions": "spec.conversion.webhook.conversionReviewVersions",
    "spec.conversion.webhookClientConfig": "spec.conversion.webhook.clientConfig",
}
"""Causes with a name that a field has only within the API server, and its path for clients."""
LONGEST_CAUSE: Final = 1024
_NAMES: Final = re.compile(r"[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)*+")
_NOT_DECLARED: Final = ("apiVersion", "kind", "metadata", "status")
"""The label and owner reference of our children are in the metadata; others write the status."""


def followed(causes: Iterable[str]) -> Iterator[str]:
    """Yield the causes of a refusal that are followed, each once and as clients spell it."""
    return islice(dict.fromkeys(SPELLED.get(cause, cause) for cause in causes), MOST_CAUSES)


def refused_places(want: Object, causes: Iterable[str]) -> tuple[Place, ...]:
    """Return the declared fields that the causes of a refusal name, such as `spec.ports[1].name`.

    A list is one field: the server counts the items of the whole object, not the declared ones.
    """
    asked = (cause for cause in followed(causes) if len(cause) <= LONGEST_CAUSE)
    places = (_declared(want, cause) for cause in asked)
    return tuple(dict.fromkeys(place for place in places if place))


def _declared(want: Object, cause: str) -> Place:
    names = _NAMES.match(cause)
    place: list[str] = []
    value: Any = want
    for name in names[0].split(".") if names else ():
        if not is_map(value) or name not in value:
            break
        place.append(name)
        value = value[name]
    return () if not place or place[0] in _NOT_DECLARED else tuple(place)


def as_held(want: Object, live: Object, manager: str, places: Iterable[Place]) -> Object:
    """Return `want` with the live values that `manager` holds at these places, instead of its own.

    To leave these out would give them up.
    """
    held = extract(live, manager) or {}
    for place in places:
        want = _replaced(want, held, place)
    return want


def _replaced(want: Object, held: Any, place: Sequence[str]) -> Object:
    name, *below = place
    inner = held.get(name) if is_map(held) else None
    value = _replaced(want[name], inner, below) if below else inner
    rest = {key: given for key, given in want.items() if key != name}
    return rest if value is None else {**rest, name: value}
