"""Options: which Secrets are copied, and to which namespaces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow import Option, Secret

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TYPE: Final = re.compile(r"[A-Za-z0-9._/-]{1,253}")
_REQUIREMENT: Final = re.compile(
    r"\s*(?:"
    r"(?P<key>[^\s=!,()]++)"
    r"(?:\s*+(?P<is>==?|!=)\s*+(?P<value>[^\s=!,()]*+)"
    r"|\s++(?P<among>in|notin)\s*+\((?P<values>[^()]*+)\))?"
    r"|!\s*+(?P<absent>[^\s=!,()]++)"
    r")\s*+(?:,|$)"
)
"""One requirement of a label selector, as kubectl takes it."""


OPTIONS: Final = (
    Option("namespace", "The namespace of the sources.", "NAMESPACE", "secretsync"),
    Option("type", "The type of the Secrets that are sources.", "TYPE", "k8s.ziwon.dev/secretsync"),
    Option(
        "skip",
        "Namespaces that get no copies; the namespace of the sources never gets any.",
        "NAMESPACE,…",
        "kube-system,kube-public",
    ),
    Option(
        "selector", "Copy only to namespaces with these labels, as `kubectl -l`.", "SELECTOR", "all"
    ),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Sources are the Secrets of `type` in `namespace`; `skip` and `selector` limit the targets.

    Raises ValueError for what cannot be read.
    """

    namespace: str = "secretsync"
    type: str = "k8s.ziwon.dev/secretsync"
    skip: tuple[str, ...] = ("kube-system", "kube-public")
    selector: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a selector that cannot be read."""
        selects(self.selector, {})
        for name in (self.namespace, *self.skip):
            if not _LABEL.fullmatch(name):
                raise ValueError(f"{name!r} is no namespace's name")
        if not _TYPE.fullmatch(self.type):
            raise ValueError(f"{self.type!r} is no type of a Secret")
        if self.type in Secret.CREDENTIALS:
            raise ValueError(f"a Secret of the type {self.type!r} gives somebody's rights")

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Selection:
        """Return the options from text; raises ValueError for one that is not valid."""
        usual = cls()
        skip = given.get("skip", ",".join(usual.skip))
        return cls(
            namespace=given.get("namespace", usual.namespace),
            type=given.get("type", usual.type),
            skip=tuple(filter(None, skip.split(","))),
            selector=given.get("selector", usual.selector),
        )

    def is_target(self, name: str, labels: Mapping[str, Any]) -> bool:
        """Return whether a namespace gets copies."""
        return name not in (self.namespace, *self.skip) and selects(self.selector, labels)


def selects(selector: str, labels: Mapping[str, Any]) -> bool:
    """Return whether a label selector selects an object with these labels.

    Raises ValueError for a selector that cannot be read.
    """
    position, chosen = 0, True
    while position < len(selector):
        match = _REQUIREMENT.match(selector, position)
        if match is None:
            raise ValueError(f"{selector!r} is no label selector, at {selector[position:]!r}")
        position = match.end()
        chosen = _meets(match, labels) and chosen
    return chosen


def _meets(requirement: re.Match[str], labels: Mapping[str, Any]) -> bool:
    if requirement["absent"]:
        return requirement["absent"] not in labels
    value = labels.get(requirement["key"])
    if requirement["is"]:
        return (value == requirement["value"]) is (requirement["is"] != "!=")
    if requirement["among"]:
        among = {member.strip() for member in requirement["values"].split(",")}
        return (value in among) is (requirement["among"] == "in")
    return value is not None
