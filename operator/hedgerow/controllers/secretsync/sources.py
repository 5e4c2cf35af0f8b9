"""Sources: the copies that each Secret asks for, and which of several Secrets has a target."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hedgerow import Secret, applied

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow import Object, View

DOMAIN: Final = "k8s.ziwon.dev"
TARGET_NAME: Final = f"{DOMAIN}/target-name"
TARGET_TYPE: Final = f"{DOMAIN}/target-type"
MEANT: Final = (TARGET_NAME, TARGET_TYPE)
"""The annotations of a source that mean something."""
SOURCE: Final = f"{DOMAIN}/source"
"""The annotation of a copy that names its source, as namespace/name."""
LABEL: Final = f"source.{DOMAIN}"
"""The prefix of the label that a copy has because of its source; the value is its namespace."""
NAMED: Final = 3
"""How many annotations a message names."""
LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class CopiedSecret(Secret):
    """One source, and the copies that its annotations ask for."""

    @property
    def annotations(self) -> Mapping[str, Any]:
        """`metadata.annotations`."""
        return self.mapping("metadata", "annotations")

    @property
    def target(self) -> str:
        """The name of its copies."""
        return self.annotations.get(TARGET_NAME) or self.name

    @property
    def type(self) -> str:
        """The type of its copies."""
        return self.annotations.get(TARGET_TYPE) or self.text("type")

    @property
    def has_target(self) -> bool:
        """Whether the name of its copies can be a name."""
        return len(self.target) <= LONGEST_NAME and bool(_NAME.fullmatch(self.target))

    @property
    def mistake(self) -> str:
        """Why it cannot have copies as its annotations ask; empty if it can."""
        if not self.has_target:
            return f"the annotation {TARGET_NAME} is no name of a Secret"
        if self.type in Secret.CREDENTIALS:
            return f"a Secret of the type {self.type} gives somebody's rights, and is not copied"
        return ""

    @property
    def unknown(self) -> list[str]:
        """Annotations with our prefix that mean nothing on a source, the first few."""
        ours = (name for name in self.annotations if name.startswith(f"{DOMAIN}/"))
        return list(islice((name for name in ours if name not in MEANT), NAMED))

    @property
    def age(self) -> tuple[str, str]:
        """The sort key of sources that want one target: the oldest comes first and has it."""
        return self.text("metadata", "creationTimestamp"), self.name

    @property
    def label(self) -> str:
        """The key of the label that copies have because of it."""
        name = self.name
        if len(name) > LONGEST_LABEL:
            digest = sha256(name.encode()).hexdigest()[:8]
            name = f"{name[: LONGEST_LABEL - 9].rstrip('-.')}-{digest}"
        return f"{LABEL}/{name}"

    @cached_property
    def fields(self) -> Object:
        """The manifest of a copy, the same in each namespace."""
        immutable = {"immutable": True} if self.immutable else {}
        return {
            "metadata": {
                "labels": {self.label: self.namespace},
                "annotations": {SOURCE: f"{self.namespace}/{self.name}"},
            },
            "type": self.type,
            "data": {**self.data},
            **immutable,
        }

    def fits(self, live: View, field_manager: str) -> bool:
        """Return whether a copy can become as this asks; otherwise it has to be made anew."""
        if live.text("type") != self.type:
            return False
        if live.at("immutable") is not True:
            return True
        there, ours = live.mapping("data"), applied(live, field_manager, "data")
        return (
            self.immutable
            and all(there.get(key) == value for key, value in self.data.items())
            and ours <= self.data.keys()
        )


@dataclass(frozen=True)
class Targets:
    """The sources that are copied and those that are not, the oldest first.

    `taken` are those whose target an older one has, each with that one; `mistaken` are those that
    cannot be copied as they ask.
    """

    copied: tuple[CopiedSecret, ...]
    taken: tuple[tuple[CopiedSecret, CopiedSecret], ...]
    mistaken: tuple[CopiedSecret, ...]


def targets_of(sources: Iterable[CopiedSecret]) -> Targets:
    """Return which sources are copied: of those that want one target, the oldest.

    A mistaken one has its target too, if it names one: its copies stay as they are.
    """
    first: dict[str, CopiedSecret] = {}
    taken: list[tuple[CopiedSecret, CopiedSecret]] = []
    mistaken: list[CopiedSecret] = []
    for source in sorted(sources, key=lambda source: source.age):
        if source.mistake:
            mistaken.append(source)
        if source.has_target and first.setdefault(source.target, source) is not source:
            taken.append((source, first[source.target]))
    copied = tuple(source for source in first.values() if not source.mistake)
    return Targets(copied, tuple(taken), tuple(mistaken))
