"""Routing: whether the Service of a BlueGreen ever selected what no check had passed for.

It knows nothing of digests and the status: only what the objects were, one version after another.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hedgerow_testing.memory.schema import Object
from support.server.store import Entry

PHASES = ("Blue", "Green")
_PHASE = "app.kubernetes.io/phase"
Template = tuple[str, str]
"""A colour, and the template of its live Deployment."""


def unchecked(log: Iterable[Entry]) -> Iterator[str]:
    """Yield what was routed while promotion was WhenChecked, and had not passed its checks."""
    stages = defaultdict[tuple[str, str], _Stage](_Stage)
    for entry in log:
        _, kind, namespace, name = entry.key
        owners = entry.object["metadata"].get("ownerReferences", ())
        owner = next((one["name"] for one in owners if one["kind"] == "BlueGreen"), None)
        owner = name if kind == "BlueGreen" else owner
        if owner is not None:
            yield from stages[namespace, owner].take(owner, kind, name, entry)


@dataclass
class _Stage:
    """What is known of one BlueGreen."""

    spec: Object = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)
    previewed: str = ""
    selected: tuple[str, ...] = ()
    asked: dict[str, Template] = field(default_factory=dict)
    passed: dict[Template, set[str]] = field(default_factory=lambda: defaultdict(set))
    served: set[Template] = field(default_factory=set)

    def take(self, owner: str, kind: str, name: str, entry: Entry) -> Iterator[str]:
        live, gone = entry.object, entry.type == "DELETED"
        match kind:
            case "BlueGreen" if gone:
                self.__init__()
            case "BlueGreen":
                self.spec = live["spec"]
            case "Job" if not gone:
                self._job(name, live)
            case "Deployment":
                colour = "Blue" if name == f"{owner}blue-deployment" else "Green"
                template = "" if gone else json.dumps(live["spec"]["template"], sort_keys=True)
                self.templates[colour] = template
            case "Service":
                selector = {} if gone else live["spec"]["selector"]
                if name == owner:
                    both = () if gone else PHASES
                    self.selected = (selector[_PHASE],) if _PHASE in selector else both
                else:
                    self.previewed = selector.get(_PHASE, "")
            case _:
                pass
        yield from self._look(entry)

    def _job(self, name: str, live: Object) -> None:
        template = self.previewed, self.templates.get(self.previewed, "")
        asked = self.asked.setdefault(name, template)
        conditions = live.get("status", {}).get("conditions", ())
        if any(one["type"] == "Complete" for one in conditions) and asked == template:
            self.passed[asked].add(name)

    def _look(self, entry: Entry) -> Iterator[str]:
        checks = self.spec.get("checks") if self.spec.get("promotion") == "WhenChecked" else None
        for colour in self.selected:
            template = colour, self.templates.get(colour, "")
            passed = len(self.passed.get(template, ())) >= len(checks or ())
            if template[1] and not passed and template not in self.served:
                yield f"{colour} was routed unchecked, by version {entry.version}: {template[1]}"
            if template[1]:
                self.served.add(template)
