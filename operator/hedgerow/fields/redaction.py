"""Redaction: values as people may see them: a Secret's hidden, long ones cut to one line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields.canonical import identical
from hedgerow.fields.paths import is_map
from hedgerow.validation import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

HIDDEN: Final = "(hidden)"
"""What stands for a value of a Secret, which is never shown."""
LONGEST: Final = 500
"""Characters of a value that are worth telling in a line of a page."""
LONGEST_VALUE: Final = 120
"""Characters of a value in a status, an Event or a sentence."""

_SECRETS: Final = frozenset({"secret", "secrets"})
_PRIVATE: Final = (("f:data",), ("f:stringData",), ("f:metadata", "f:annotations"))
"""Where a Secret has its values, or, in an annotation, a copy of them."""
_WORDS: Final = frozenset({"", "true", "false", "null", "yes", "no", "on", "off"})
_NUMBER: Final = re.compile(r"[-+]?(\d[\d_]*)?\.?\d*([eE][-+]?\d+)?$")
"""What reads as something else than a string when it stands bare."""


def is_secret(kind: str) -> bool:
    """Return whether a kind is that of Secrets, however it is spelled and whatever its group."""
    return kind.lower() in _SECRETS


def is_private(kind: str, steps: Sequence[str]) -> bool:
    """Return whether the value at a place of such an object must never be shown.

    `steps` are fieldsV1 elements. A place is private that holds values of a Secret, that is within
    them, or that contains them.
    """
    return is_secret(kind) and any(
        all(one == other for one, other in zip(steps, place, strict=False)) for place in _PRIVATE
    )


def shown(kind: str, steps: Sequence[str], value: Any) -> str:
    """Return the value at a place of such an object in one line of at most 120 characters."""
    return HIDDEN if is_private(kind, steps) else worded(value, LONGEST_VALUE)


def both(kind: str, steps: Sequence[str], want: Any, live: Any) -> tuple[str | None, str | None]:
    """Return a declared and a live value as `shown` does; None where there is no value.

    Of two maps only what differs is shown: it would be cut off, at the end of long ones.
    """
    if is_map(want) and is_map(live):
        keys = [key for key in want | live if not _same(want, live, key)]
        want, live = ({key: side[key] for key in keys if key in side} for side in (want, live))
    declared, there = (
        None if value is None else shown(kind, steps, value) for value in (want, live)
    )
    return declared, there


def _same(one: dict[str, Any], other: dict[str, Any], key: str) -> bool:
    return key in one and key in other and identical(one[key], other[key])


def printable(text: str, longest: int = LONGEST) -> str:
    """Return a text that neither steers a terminal nor breaks XML, cut where it gets endless."""
    escaped = (
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut(text, longest)
    )
    return cut("".join(escaped), longest)


def worded(value: Any, longest: int = LONGEST) -> str:
    """Return a value in one line: JSON, but a string bare where it can be nothing else."""
    written = json.dumps(value, ensure_ascii=False)
    bare = isinstance(value, str) and _is_plain(value, written)
    return printable(value if bare else written, longest)


def _is_plain(text: str, written: str) -> bool:
    if text != text.strip() or written != f'"{text}"' or text.lower() in _WORDS:
        return False
    return text[:1] not in {"{", "["} and not _NUMBER.match(text)
