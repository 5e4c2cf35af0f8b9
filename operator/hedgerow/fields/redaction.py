"""Redaction: values as people may see them, those of Secrets hidden and long ones cut."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hedgerow.encoding import canonical_json
from hedgerow.fields.canonical import identical
from hedgerow.fields.paths import is_map
from hedgerow.texts import LONGEST, printable
from hedgerow.validation import beginning

if TYPE_CHECKING:
    from collections.abc import Sequence

HIDDEN: Final = "(hidden)"
"""Shown instead of a Secret's value, which is never shown."""
LONGEST_VALUE: Final = 120
"""The most characters of a value in a status, an Event or a sentence."""

PRIVATE: Final = (("f:data",), ("f:stringData",), ("f:metadata", "f:annotations"))
"""The fields with a Secret's values; an annotation may contain a copy of them."""
_SECRETS: Final = frozenset({"secret", "secrets"})
_WORDS: Final = frozenset({"", "true", "false", "null", "yes", "no", "on", "off"})
_NUMBER: Final = re.compile(r"[-+]?(\d[\d_]*+)?\.?+\d*+([eE][-+]?\d++)?$")
"""Text that YAML would read as a number if it were not quoted."""


def is_secret(kind: str) -> bool:
    """Return whether a kind is `Secret` or `secrets`, in any case and of any group."""
    return kind.lower() in _SECRETS


def is_private(kind: str, field_path: Sequence[str]) -> bool:
    """Return whether the value at a place of an object of this kind must never be shown.

    `field_path` are fieldsV1 elements. A place is private if it is one of a Secret's values, or is
    inside or above one.
    """
    return is_secret(kind) and any(
        all(element == step for element, step in zip(field_path, place, strict=False))
        for place in PRIVATE
    )


def shown(kind: str, field_path: Sequence[str], value: Any) -> str:
    """Return a value of an object of this kind, in one line of at most 120 characters."""
    return HIDDEN if is_private(kind, field_path) else worded(value, LONGEST_VALUE)


def both(
    kind: str, field_path: Sequence[str], want: Any, live: Any
) -> tuple[str | None, str | None]:
    """Return a declared and a live value as `shown` does; None if there is no value.

    Of two maps the differing keys come first. In long maps they might be cut off otherwise.
    """
    if is_map(want) and is_map(live):
        keys = sorted(want | live, key=lambda key: _same(want, live, key))
        want, live = ({key: side[key] for key in keys if key in side} for side in (want, live))
    declared, there = (
        None if value is None else shown(kind, field_path, value) for value in (want, live)
    )
    return declared, there


def _same(first: dict[str, Any], second: dict[str, Any], key: str) -> bool:
    return key in first and key in second and identical(first[key], second[key])


def worded(value: Any, longest: int = LONGEST) -> str:
    """Return a value as JSON in one line; a string is unquoted if it cannot be misread."""
    if not isinstance(value, str):
        return printable(beginning(value, longest), longest)
    text = value[: longest + 1]  # one character more is cut
    written = canonical_json(text)
    return printable(text if _is_plain(text, written) else written, longest)


def _is_plain(text: str, written: str) -> bool:
    if text != text.strip() or written != f'"{text}"' or text.lower() in _WORDS:
        return False
    return text[:1] not in {"{", "["} and not _NUMBER.match(text)
