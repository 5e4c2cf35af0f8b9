"""Manifest: an object as the YAML that kubectl takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Dumper(yaml.CSafeDumper):
    """A dumper that writes the same dict twice instead of an alias that nobody can read."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (the library's signature)
        return True


def to_yaml(*objects: Mapping[str, Any]) -> str:
    """Give one or more objects as YAML documents, keys in the order given."""
    return yaml.dump_all(
        [dict(obj) for obj in objects],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        explicit_start=len(objects) > 1,
    )
