"""Signatures: a write's name that is the same in every run."""

from __future__ import annotations

import re

from faults.proxy import Exchange
from hedgerow.controllers.bluegreen.checks import MANAGED_BY

_START = re.compile(r"-\d{10}\b")
_ELSEWHERE = re.compile(r"-x[0-9a-f]{6}-(\w+)$")


def signature(asked: Exchange) -> str:
    """Name what a request writes, without namespace, times and digests."""
    place, *parts = asked.path.split("/namespaces/", 1)[-1].split("/")
    elsewhere = _ELSEWHERE.search(place)
    verb = {"PATCH": "apply", "DELETE": "delete"}.get(asked.method, asked.method)
    if parts[0] == "events":
        body = asked.json()
        about = body.get("regarding", {})
        named = _START.sub("-N", f"{about.get('kind')}/{about.get('name')}")
        return f"{verb} Event {body.get('reason')} on {named}"
    name = _START.sub("-N", "/".join([*(elsewhere.groups() if elsewhere else ()), *parts]))
    return f"{verb} {name}{_selecting(asked)}"


def _selecting(asked: Exchange) -> str:
    """Name the colour that the Service of a BlueGreen is to select, or both."""
    spec = asked.json().get("spec", {}) if asked.method == "PATCH" else {}
    selector = spec.get("selector", {}) if "/services/" in asked.path else {}
    if MANAGED_BY not in selector:
        return ""
    return f" selecting {selector.get('app.kubernetes.io/phase', 'both')}"
