"""Definitions: the custom resources of a server, installed once.

To apply a great definition again takes the server half a second, even where nothing changes, and
most modules of tests begin with all of them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from hedgerow_testing.api import Api
from support.code.sources import ROOT

_METADATA = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
_applied: dict[tuple[str, str], int] = {}
"""The generation as which a manager left a definition, by the definition's uid and the manager."""


def define(api: Api, definition: Any, manager: str, *, force: bool = False) -> None:
    """Apply a definition, unless it is as this manager left it."""
    live = api.raw("GET", api.path(definition), headers=_METADATA)
    if live.ok and _applied.get(_key(live.body, manager)) == live.body["metadata"]["generation"]:
        return
    made = api.apply(definition, manager, force=force).must()
    _applied[_key(made, manager)] = made["metadata"]["generation"]


def _key(live: Any, manager: str) -> tuple[str, str]:
    return live["metadata"]["uid"], manager


@cache
def committed(name: str) -> Any:
    """Return a definition from manifests/chart/definitions."""
    text = (ROOT / "manifests/chart/definitions" / f"{name}.yaml").read_text("utf-8")
    return yaml.load(text, yaml.CSafeLoader)
