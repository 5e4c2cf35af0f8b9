"""Shard: the namespaces that one of several operators serves, if they divide all of them.

A namespace has a point, the first 24 bits of its FNV-1a hash. Shard i of n serves the namespaces
whose point is i modulo n; objects in no namespace belong to shard 0. Fewer bits would not tell
names apart that differ only at their end: `team-a` to `team-z` have the first 8 in common.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

MOST: Final = 100
"""The most shards: each receives all that the API server sends to any of them."""

_BASIS: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_BITS: Final = 0xFFFFFFFFFFFFFFFF
_POINT_BITS: Final = 24

_NUMBER: Final = r"(0|[1-9][0-9]{0,2})"
_TEXT: Final = re.compile(rf"{_NUMBER}/{_NUMBER}")
_SUFFIX: Final = re.compile(rf"shard-{_NUMBER}-of-{_NUMBER}")


def hashed(namespace: str) -> int:
    """Return the 64-bit FNV-1a hash of a namespace."""
    value = _BASIS
    for byte in namespace.encode(errors="surrogatepass"):
        value = ((value ^ byte) * _PRIME) & _BITS
    return value


@lru_cache(maxsize=4096)
def point_of(namespace: str) -> int:
    """Return the point of a namespace: 24 bits."""
    return hashed(namespace) >> (64 - _POINT_BITS)


class Shard(Struct, frozen=True):
    """One of `count` shards, numbered from 0. Raises ValueError if there is no such shard."""

    number: int
    count: int

    def __post_init__(self) -> None:
        """Raise ValueError if there is no such shard."""
        if not (2 <= self.count <= MOST and 0 <= self.number < self.count):  # noqa: PLR2004 - two
            raise ValueError(
                f"no shard is {self.number}/{self.count}: there are 2 to {MOST}, counted from 0"
            )

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard of a text such as 2/8; raises ValueError."""
        match = _TEXT.fullmatch(text)
        if not match:
            raise ValueError(f"{text!r} is no shard, such as 2/8")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        """Return it as it is given: 2/8."""
        return f"{self.number}/{self.count}"

    @property
    def suffix(self) -> str:
        """The end of the names of its own objects."""
        return f"shard-{self.number}-of-{self.count}"

    def serves(self, namespace: str) -> bool:
        """Return whether it serves a namespace; "" stands for objects in none."""
        return (point_of(namespace) % self.count if namespace else 0) == self.number


def lease_name(base: str, shard: Shard | None) -> str:
    """Return the name of the Lease of an operator that serves a shard, or all namespaces.

    `base` is the name of its installation.
    """
    return base if shard is None else f"{base}-{shard.suffix}"


def shard_of(base: str, name: str) -> Shard | None:
    """Return the shard of an installation whose Lease has a name; None if none has it."""
    match = (
        _SUFFIX.fullmatch(name.removeprefix(f"{base}-")) if name.startswith(f"{base}-") else None
    )
    try:
        return Shard(int(match[1]), int(match[2])) if match else None
    except ValueError:
        return None


def is_lease_of(base: str, name: str) -> bool:
    """Return whether a Lease's name is that of an installation's operators, sharded or not."""
    return name == base or shard_of(base, name) is not None


def ends_as_shard(instance: str) -> bool:
    """Return whether an instance's names would be those of a shard of another instance."""
    return re.search(rf"(^|-){_SUFFIX.pattern}$", instance) is not None
