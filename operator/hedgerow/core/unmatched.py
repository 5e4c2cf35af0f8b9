"""Unmatched: terms of a resource that mean no field that is there.

Such a term is legal, as the field may yet come; it may as well be a slip of the pen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.fieldset import SELF, Tree
from hedgerow.core.managed import entries
from hedgerow.core.terms import CLAIM, YIELD, joined

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from hedgerow.core.steps import ChildId
    from hedgerow.core.terms import Term, Terms
    from hedgerow.core.trees import Steps
    from hedgerow_schemas.base import Object


def unmatched(
    terms: Terms,
    live: Mapping[ChildId, Object],
    declared: Collection[ChildId],
    kinds: Collection[str],
) -> tuple[str, ...]:
    """Give the terms that mean nothing, as they were written, each with its annotation.

    `declared` are the children that are wanted; of one that is not there yet no field is known.
    Nor is it known which children of a kind that is owned are still to come, by what names.
    """
    if not (terms.yields or terms.claims):
        return ()
    known = {child: tuple(map(joined, _places(obj))) for child, obj in live.items()}
    children = {**dict.fromkeys(declared), **known}
    worded = [(YIELD, term) for term in terms.yields] + [(CLAIM, term) for term in terms.claims]
    return tuple(
        f"{word}: {term.text}" for word, term in worded if not _is_met(term, children, kinds)
    )


def _is_met(
    term: Term, children: Mapping[ChildId, tuple[str, ...] | None], kinds: Collection[str]
) -> bool:
    meant = [places for child, places in children.items() if term.names(*child)]
    if not meant:
        return (term.kind == "*" or term.kind in kinds) and ".*" in term.name.pattern
    return any(places is None or any(map(term.path.fullmatch, places)) for places in meant)


def _places(live: Object) -> Iterator[Steps]:
    for _, _, tree in entries(live):
        yield from _held(tree, ())


def _held(tree: Tree, above: Steps) -> Iterator[Steps]:
    """Give each place that is held itself, not only something within it."""
    for element, below in tree.items():
        if element == SELF:
            continue
        steps = (*above, element)
        if not below or SELF in below:
            yield steps
        yield from _held(below, steps)
