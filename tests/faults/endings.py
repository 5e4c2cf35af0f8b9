"""Endings: what a run comes to, with all left out that no two runs have alike."""

from __future__ import annotations

import json
import re
from typing import Any

from faults.scenario import Object, People, Scenario

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_START = re.compile(r"\b(\w+)-(\d{10})\b")
CHECK = re.compile(r"\b(\w+-check)-[0-9a-f]{8}\b")
"""The Job of a check: it has another name where the answer to its creation was lost."""
_GENERATION = re.compile(r"generation \d+")
_ADDRESSES = ("clusterIP", "clusterIPs")
_COUNTS = ("missed",)
"""What goes on with time alone."""
ATTEMPTS = ("attempts", "insteadOf")
"""What a check is run again for: a Job is not believed if the answer to its creation was lost."""


def ending(people: People, scenario: Scenario, namespace: str) -> Object:
    """Return the resource and its children, each by kind and name, comparable between runs."""
    own = {key: scenario.resource[key] for key in ("apiVersion", "kind")}
    found = {
        f"{kind['kind']}/{_name(live, namespace)}": live
        for kind in (own, *(kind for kind in scenario.children if kind != own))
        for live in people.every(kind)
    }
    text = json.dumps({name: _plain(live) for name, live in found.items()}, sort_keys=True)
    for name, live in found.items():
        text = text.replace(live["metadata"]["uid"], f"uid of {name}")
        address = live.get("spec", {}).get("clusterIP", "None")
        text = text if address == "None" else text.replace(address, f"address of {name}")
    for check in (check for live in found.values() for check in _checks(live)):
        text = text.replace(check["job"], f"job of {check['name']}")
    text = text.replace(namespace, "here").replace(namespace.rpartition("-")[2], "mark")
    text = _UID.sub("uid of what is gone", text)
    text = _TIME.sub("some time", text)
    text = _GENERATION.sub("some generation", text)
    starts = sorted({match.group(2) for match in _START.finditer(text)}, key=int)
    for number, start in enumerate(starts, 1):
        text = text.replace(start, f"start {number}")
    return json.loads(text)


def warnings(people: People, namespace: str) -> list[tuple[str, str, str]]:
    """Return the Warning Events that are ours, as what they regard, the reason and the note."""
    events = people.every({"apiVersion": "events.k8s.io/v1", "kind": "Event"})
    found: list[tuple[str, str, str]] = []
    for event in events:
        about = event.get("regarding", {})
        note = CHECK.sub(r"\1", _TIME.sub("some time", event.get("note", "")))
        note = _UID.sub("uid", _START.sub(r"\1-start", note)).replace(namespace, "here")
        name = _START.sub(r"\1-start", f"{about.get('kind')}/{about.get('name')}")
        ours = event.get("reportingController") == "hedgerow.dev/controller"
        if ours and event.get("type") == "Warning":
            found.append((name, event.get("reason", ""), note))
    return sorted(found)


def difference(wanted: Any, found: Any, path: str = "") -> list[str]:
    """Return where two endings differ, a line each."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        names = sorted(wanted.keys() | found.keys())
        return [
            line
            for name in names
            for line in difference(wanted.get(name), found.get(name), f"{path}.{name}")
        ]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = zip(wanted, found, strict=True)
        return [
            line
            for number, (one, other) in enumerate(pairs)
            for line in difference(one, other, f"{path}[{number}]")
        ]
    return [] if wanted == found else [f"{path}: wanted {_short(wanted)}, found {_short(found)}"]


def _name(live: Object, namespace: str) -> str:
    """Return the name, after the end of the namespace's name if it is elsewhere."""
    meta = live["metadata"]
    end = meta["namespace"].removeprefix(namespace).lstrip("-")
    return "/".join(filter(None, (end, meta["name"])))


def _plain(live: Object) -> Object:
    """Return an object without versions, counters, and the addresses that it was given."""
    meta = {
        key: value
        for key, value in live["metadata"].items()
        if key not in {"resourceVersion", "generation", "namespace", "creationTimestamp"}
    }
    entries = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in meta.pop("managedFields", ())
    ]
    entries.sort(key=lambda e: (e["manager"], e["operation"], e.get("subresource", "")))
    status = dict(live.get("status", {}))
    for name in _COUNTS:
        status.pop(name, None)
    if "observedGeneration" in status:
        behind = live["metadata"].get("generation", 0) - status["observedGeneration"]
        # How far behind only counts the writes on the way.
        status["observedGeneration"] = "behind" if behind else "newest"
    for condition in status.get("conditions", ()):
        condition.pop("observedGeneration", None)
    held = (entry.get("fieldsV1", {}).get("f:status", {}).get("f:checks", {}) for entry in entries)
    for fields in (field for checks in held for field in checks.values()):
        for name in ATTEMPTS:
            fields.pop(f"f:{name}", None)
    for check in _checks(live):
        for name in ATTEMPTS:
            check.pop(name, None)
    spec = {key: value for key, value in live.get("spec", {}).items() if not _given(key, value)}
    return {
        **{key: value for key, value in live.items() if key not in {"status", "spec"}},
        "metadata": {**meta, "managedFields": entries},
        "spec": spec,
        "status": status,
    }


def _checks(live: Object) -> list[Object]:
    return live.get("status", {}).get("checks", [])


def _given(key: str, value: Any) -> bool:
    return key in _ADDRESSES and value not in ("None", ["None"])


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 200 else f"{text[:200]}…"
