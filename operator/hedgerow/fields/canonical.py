"""Canonical: the API server's spelling of quantities and times, and the effect of its defaults."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields.paths import is_list, is_map, parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DECIMAL: Final = {
    -9: "n",
    -6: "u",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)
_LONGEST: Final = 64
"""The most characters of a quantity that is respelled; a longer one is returned unchanged."""
_NANO: Final = 10**9
_NO_DEFAULTS: Final[Mapping[str, Any]] = {}
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "fieldRef": {"apiVersion": "v1"},
    "resourceFieldRef": {"divisor": "0"},
    "serviceAccountToken": {"expirationSeconds": 3600},
}
"""Defaults that the server adds inside atomic fields of a PodSpec; no other default is owned."""
_NEVER_ZERO: Final = frozenset({
    "failureThreshold", "healthCheckNodePort", "hostPort", "nodePort", "periodSeconds",
    "successThreshold", "targetPort", "timeoutSeconds",
})  # fmt: skip
"""Numbers that the server fills in if they are 0: they have defaults, and Go types without pointer.

Source: `defaults.go` of Kubernetes's own API groups, and the allocators of ports.
"""
_MEANT_EMPTY: Final = frozenset({"storageClassName"})
"""Texts of which Kubernetes takes an empty one for a value: here that no class is meant."""
_LARGEST: Final = (2**63 - 1) * _NANO
"""The server caps binary quantities at this amount, and no others."""
_KIBI: Final = 1024
_DIGITS_DECIMAL: Final = 18
_DIGITS_BINARY: Final = 15
_SCALE: Final = {suffix: exponent for exponent, suffix in _DECIMAL.items()}
_SECONDS: Final = frozenset({
    ("deprecatedFirstTimestamp",), ("deprecatedLastTimestamp",),
    ("status", "conditions", "lastTransitionTime"),
})  # fmt: skip
_MICROSECONDS: Final = frozenset({
    ("eventTime",), ("series", "lastObservedTime"), ("spec", "acquireTime"), ("spec", "renewTime"),
})  # fmt: skip


def builtin(api_version: str) -> bool:
    """Return whether the API group is Kubernetes's own: the server respells values only there.

    A custom resource keeps its strings as they were sent, including quantities.
    """
    group, slash, _ = api_version.rpartition("/")
    return not slash or "." not in group or group.endswith(".k8s.io")


def identical(left: Any, right: Any) -> bool:
    """Return whether two JSON values are strictly equal: "8" is not 8, true is not 1, 1.0 is 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if is_map(left):
        is_same = is_map(right) and left.keys() == right.keys()
        return is_same and all(identical(value, right[name]) for name, value in left.items())
    if is_list(left):
        return is_list(right) and len(left) == len(right) and all(map(identical, left, right))
    return bool(left == right)


def same(want: Any, live: Any, field_path: Sequence[str] = ()) -> bool:
    """Return whether a declared value of a built-in kind equals the live one, but for spelling.

    `field_path` are the fieldsV1 elements down to the value. Spelling is ignored only in fields
    that are known to be a Quantity or a time, never in arbitrary strings such as env values; and
    what the server adds only where it is known to add it. A field that is declared empty may be
    absent: the server stores no empty values of optional fields (Go's `omitempty`).
    """
    return identical(want, live) or _is_stored(canonical_value(want, field_path), live)


def _is_stored(want: Any, live: Any) -> bool:
    if is_map(want) and is_map(live):
        return live.keys() <= want.keys() and all(
            _is_stored(value, live[name]) if name in live else not value
            for name, value in want.items()
        )
    if is_list(want) and is_list(live):
        return len(want) == len(live) and all(map(_is_stored, want, live))
    return identical(want, live)


def is_completed(want: Any, live: Any, field_path: Sequence[str]) -> bool:
    """Return whether `live` is a declared value of a built-in kind, completed by defaults.

    An empty text, list or map says nothing, as if it were absent: the server leaves it out, or
    fills in its default. So does 0 where that is no value. A list item with an empty key becomes
    another item: its key gets the default.
    """
    if any("" in parse(step).values for step in field_path if step.startswith("k:")):
        return True
    name = next((step[2:] for step in reversed(field_path) if step.startswith("f:")), "")
    return _is_completed(canonical_value(want, field_path), live, name)


def _is_completed(want: Any, live: Any, name: str) -> bool:
    if is_map(want) and is_map(live):
        return all(_is_completed(value, live.get(field), field) for field, value in want.items())
    if is_list(want) and is_list(live) and len(want) == len(live):
        return all(_is_completed(*pair, name) for pair in zip(want, live, strict=True))
    if identical(want, live) or (not want and live is None):
        return True
    if want or want is False:
        return False
    return name in _NEVER_ZERO if want == 0 else name not in _MEANT_EMPTY


def canonical_value(value: Any, field_path: Sequence[str] = ()) -> Any:
    """Return the value at `field_path` in the spelling that the server uses for a built-in kind.

    An apply of the canonical form settles at once. It does not conflict with a co-owner whose value
    means the same: the server compares spellings.
    """
    names = tuple(step[2:] for step in field_path if step.startswith("f:"))
    return _respelled(value, names)


def _respelled(value: Any, names: tuple[str, ...]) -> Any:
    if is_map(value):
        spelled = {name: _respelled(inner, (*names[-2:], name)) for name, inner in value.items()}
        return {**_DEFAULTS.get(names[-1] if names else "", _NO_DEFAULTS), **spelled}
    if is_list(value):
        return [_respelled(inner, names) for inner in value]
    if _is_quantity(names):
        return quantity(value)
    if names in _SECONDS:
        return time(value, "seconds")
    return time(value, "microseconds") if names in _MICROSECONDS else value


def _is_quantity(names: tuple[str, ...]) -> bool:
    match names[-3:]:
        case ["resources", "limits" | "requests", _] | [_, "overhead", _] | ["overhead", _]:
            return True
        case [*_, "emptyDir", "sizeLimit"] | [*_, "resourceFieldRef", "divisor"]:
            return True
        case _:
            return False


def quantity(value: Any) -> Any:
    """Return the canonical Quantity: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`.

    The rules are those of apimachinery's `resource.Quantity.CanonicalizeBytes`: use the largest
    suffix that leaves no fraction, and keep the family of suffixes. A value that is not a quantity
    is returned unchanged.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text = str(value)
    return (_quantity(text) if len(text) <= _LONGEST else None) or value


@lru_cache(maxsize=1024)
def _quantity(text: str) -> str | None:
    read = _QUANTITY.fullmatch(text)
    if read is None or not (read["whole"] or read["part"]):
        return None
    if _is_kept(read):
        return text
    nano = _in_nano(read)
    if read["binary"]:
        nano = max(-_LARGEST, min(nano, _LARGEST))
    if read["binary"] and abs(nano) >= _KIBI * _NANO and nano % _NANO == 0:
        return _in_binary(nano // _NANO)
    return _in_decimal(nano, exponential=read["exponent"] is not None)


def _is_kept(read: re.Match[str]) -> bool:
    """Return whether `ParseQuantity` keeps the text as it is: `1.234`, `1E3` and `+5` stay."""
    whole, part = read["whole"].lstrip("0") or "0", read["part"] or ""
    if read["binary"]:
        exponent = 10 * _BINARY.index(read["binary"])
        return not part and len(whole) + exponent * 3 // 10 < _DIGITS_BINARY and int(whole) % 8 != 0
    scale, digits = _exponent(read) - len(part), whole + part
    return (
        scale % 3 == 0
        and scale >= min(_DECIMAL)
        and len(digits) <= _DIGITS_DECIMAL
        and not digits.startswith("0")
        and not digits.endswith("000")
    )


def _exponent(read: re.Match[str]) -> int:
    return int(read["exponent"] or _SCALE[read["decimal"] or ""])


def _in_nano(read: re.Match[str]) -> int:
    """Return the amount in units of 10⁻⁹; smaller fractions are rounded away from zero."""
    part = read["part"] or ""
    digits = int((read["whole"] or "") + part)
    if read["binary"]:
        digits *= _KIBI ** _BINARY.index(read["binary"])
    exponent = _exponent(read) - len(part) + 9
    nano = digits * 10**exponent if exponent >= 0 else -(-digits // 10**-exponent)
    return -nano if read["sign"] == "-" else nano


def _in_binary(amount: int) -> str:
    power = 0
    while amount % _KIBI == 0:
        amount, power = amount // _KIBI, power + 1
    return f"{amount}{_BINARY[power]}"


def _in_decimal(nano: int, *, exponential: bool) -> str | None:
    if nano == 0:
        return "0"
    exponent = -9
    while nano % 1000 == 0:
        nano, exponent = nano // 1000, exponent + 3
    if exponential:
        return f"{nano}e{exponent}" if exponent else str(nano)
    # Beyond E, servers up to 1.36 drop the exponent: there is no canonical form to match.
    return f"{nano}{_DECIMAL[exponent]}" if exponent in _DECIMAL else None


def time(value: Any, precision: str = "seconds") -> Any:
    """Return an RFC 3339 instant in UTC with `Z`; any other value is returned unchanged.

    `metav1.Time` has whole seconds, `metav1.MicroTime` always has six decimals.
    """
    if not isinstance(value, str):
        return value
    try:
        instant = datetime.fromisoformat(value)
        known = None if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):  # no time, or one that is not in years 1 to 9999 of UTC
        return value
    return known.replace(tzinfo=None).isoformat(timespec=precision) + "Z" if known else value
