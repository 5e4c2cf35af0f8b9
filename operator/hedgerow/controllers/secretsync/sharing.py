"""Sharing: what the sources of one target Secret declare together, and where they clash."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hedgerow import Key, Secret, View, json_text, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow import Object

DOMAIN: Final = "k8s.ziwon.dev"
TARGET_NAME: Final = f"{DOMAIN}/target-name"
TARGET_TYPE: Final = f"{DOMAIN}/target-type"
SOURCES: Final = f"{DOMAIN}/sources"
"""The annotation of a copy that names its sources, and which keys it has from each."""
MEANT: Final = (TARGET_NAME, TARGET_TYPE)
"""The annotations of a source that mean something."""
FINALIZER: Final = f"{DOMAIN}/secretsync"
LABEL: Final = f"source.{DOMAIN}"
"""The prefix of a copy's labels, one for each source; the value is the source's namespace."""
NAMED: Final = 3
"""How many namespaces or sources a message names."""
MOST_PARTS: Final = 1000
"""The most sources of one copy that are read, in some milliseconds."""
LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True)
class CopiedSecret:
    """One source, as it is read: what it wants of its target."""

    view: View

    @property
    def name(self) -> str:
        """The Secret's own name."""
        return self.view.name

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.view.namespace, self.view.name)

    @property
    def annotations(self) -> Mapping[str, Any]:
        """`metadata.annotations`."""
        return self.view.mapping("metadata", "annotations")

    @property
    def target(self) -> str:
        """The name of its copies."""
        return self.annotations.get(TARGET_NAME) or self.name

    @property
    def type(self) -> str:
        """The type of its copies."""
        return self.annotations.get(TARGET_TYPE) or self.view.text("type")

    @property
    def data(self) -> Mapping[str, Any]:
        """Its values by key, in base64."""
        return self.view.mapping("data")

    @property
    def is_immutable(self) -> bool:
        """Whether its values never change."""
        return self.view.at("immutable") is True

    @property
    def is_going(self) -> bool:
        """Whether it is being deleted."""
        return bool(self.view.at("metadata", "deletionTimestamp"))

    @property
    def is_held(self) -> bool:
        """Whether our finalizer holds it: copies are made only then, or they might be forgotten."""
        return FINALIZER in self.view.items("metadata", "finalizers")

    @property
    def mistake(self) -> str:
        """Why it cannot have copies as its annotations ask; empty if it can."""
        if len(self.target) > LONGEST_NAME or not _NAME.fullmatch(self.target):
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
    def is_readable(self) -> bool:
        """Whether it is known what copies it is to have."""
        return not self.mistake

    @property
    def age(self) -> tuple[str, str]:
        """What sorts sources that share a target: the oldest comes first."""
        return self.view.text("metadata", "creationTimestamp"), self.name

    @property
    def label(self) -> str:
        """The key of the label that copies have because of it."""
        name = self.name
        if len(name) > LONGEST_LABEL:
            digest = sha256(name.encode()).hexdigest()[:8]
            name = f"{name[: LONGEST_LABEL - 9].rstrip('-.')}-{digest}"
        return f"{LABEL}/{name}"


@dataclass(frozen=True)
class TargetSecret:
    """The sources of one target Secret, the oldest first; of a key that two have, it wins."""

    name: str
    sources: tuple[CopiedSecret, ...]

    @cached_property
    def wanted(self) -> dict[str, list[CopiedSecret]]:
        """The first sources that have each key, no more than are told of."""
        found: dict[str, list[CopiedSecret]] = {}
        for source in self.sources:
            for key in source.data:
                having = found.setdefault(key, [])
                if len(having) < NAMED + 2:
                    having.append(source)
        return found

    @cached_property
    def fields(self) -> Object:
        """The manifest of the copy, the same in each namespace."""
        given: dict[str, list[str]] = {source.name: [] for source in self.sources}
        for key, having in self.wanted.items():
            given[having[0].name].append(key)
        parts = [
            {
                "namespace": source.view.namespace,
                "name": source.name,
                "uid": source.view.uid,
                "keys": sorted(given[source.name]),
            }
            for source in self.sources
        ]
        immutable = {"immutable": True} if self.is_immutable else {}
        return {
            "metadata": {
                "labels": {one.label: one.view.namespace for one in self.sources},
                "annotations": {SOURCES: json_text(parts)},
            },
            "type": self.type,
            "data": {key: having[0].data[key] for key, having in self.wanted.items()},
            **immutable,
        }

    @property
    def type(self) -> str:
        """The type of the copy: that of the oldest source."""
        return self.sources[0].type

    @property
    def is_immutable(self) -> bool:
        """Whether no source changes any more."""
        return all(source.is_immutable for source in self.sources)

    def fits(self, live: View) -> bool:
        """Return whether a copy can become this one; otherwise it has to be made anew."""
        if live.text("type") != self.type:
            return False
        if live.at("immutable") is not True:
            return True
        ours = {key for part in origins_of(live) for key in part.keys}
        there, data = live.mapping("data"), self.fields["data"]
        return (
            self.is_immutable
            and ours <= data.keys()
            and all(there.get(key) == value for key, value in data.items())
        )

    def clashes(self, mine: CopiedSecret) -> Iterator[str]:
        """Yield what a source wants that others of the same target want as well: of three of them.

        Of all sources together it takes as long as they have keys, however many want the same one.
        """
        others = self._rivals(mine)
        for other in others[:NAMED]:
            both = sorted(mine.data.keys() & other.data.keys())
            more = f" and {len(both) - 1} more" if len(both) > 1 else ""
            yield (
                f"Secret/{other.name} has the key {both[0]}{more} too, for the same"
                f" Secret/{self.name}; the copies have that of"
                f" Secret/{self.wanted[both[0]][0].name}"
            )
        if len(others) > NAMED:
            yield f"other sources have keys of Secret/{self.name} too"
        other = self.sources[0] if mine.type != self.type else self._odd
        if other is not None:
            yield (
                f"Secret/{other.name} wants the type {other.type} for the same"
                f" Secret/{self.name}, not {mine.type}; the copies have {self.type}"
            )

    def _rivals(self, mine: CopiedSecret) -> list[CopiedSecret]:
        """Return the first sources that have a key of this one, one more than are named."""
        found: dict[str, CopiedSecret] = {}
        for key in sorted(mine.data):
            for other in self.wanted[key]:
                if other is not mine:
                    found.setdefault(other.name, other)
            if len(found) > NAMED:
                break
        return list(found.values())[: NAMED + 1]

    @cached_property
    def _odd(self) -> CopiedSecret | None:
        """The first source that wants another type than the copies have."""
        return next((source for source in self.sources if source.type != self.type), None)


@dataclass(frozen=True, slots=True)
class Origin:
    """What a copy says of one of its sources."""

    namespace: str
    name: str
    uid: str
    keys: tuple[str, ...]

    @property
    def key(self) -> Key:
        """The source's namespace and name."""
        return Key(self.namespace, self.name)


def origins_of(copy: View) -> tuple[Origin, ...]:
    """Return what a copy says of its sources; nothing if that cannot be read.

    Whoever may edit a copy may write anything there: more than `MOST_PARTS` are not read.
    """
    text = copy.text("metadata", "annotations", SOURCES)
    try:
        read = read_json(text or "[]")
    except ValueError:
        return ()
    parts = View({"parts": read}).items("parts")
    return tuple(map(_origin, parts)) if len(parts) <= MOST_PARTS else ()


def _origin(read: Any) -> Origin:
    part = View(read)
    return Origin(
        part.text("namespace"),
        part.text("name"),
        part.text("uid"),
        tuple(key for key in part.items("keys") if isinstance(key, str)),
    )


def targets(sources: Iterable[CopiedSecret]) -> dict[str, TargetSecret]:
    """Return the targets of some sources, by name."""
    found: dict[str, list[CopiedSecret]] = {}
    for source in sorted(sources, key=lambda source: source.age):
        found.setdefault(source.target, []).append(source)
    return {name: TargetSecret(name, tuple(shared)) for name, shared in found.items()}
