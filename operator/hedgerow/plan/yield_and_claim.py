"""Yield and claim: which contested fields a user leaves to others, and which are taken back.

The grammar of the resource's annotation:

    policy  = entry *( ( ";" / newline ) entry )
    entry   = kind "/" name ":" path *( "," path )
    kind    = a kind, or "*"
    name    = a child's name, or "*"
    path    = a field as conflicts print it, without or with the first dot: spec.replicas,
              spec.template.spec.containers[name="web"].image

A newline after ":" or "," separates nothing. In a path, `*` stands for any one name, such as a
label's with dots in it, and `[*]` for any item of a list. `**` at the end stands for all fields
below. The keys of a list item may come in any order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hedgerow.encoding import to_ascii
from hedgerow.fields.managed_fields import entries
from hedgerow.fields.sets import FieldPath, is_key, members
from hedgerow.objects import labelling_program, metadata
from hedgerow.plan import field_patterns
from hedgerow.plan.field_patterns import (
    ANY,
    LONGEST,
    FieldPatternError,
    FieldPatterns,
    keys,
    short,
    steps_of,
)
from hedgerow.texts import command_line, cut

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping

    from hedgerow.contract import Word
    from hedgerow.fields.sets import FieldPath
    from hedgerow.objects import ChildId
    from hedgerow_schemas.base import Object


YIELD: Final = "hedgerow.dev/yield"
CLAIM: Final = "hedgerow.dev/claim"
ALLOW_CLAIMS: Final = "hedgerow.dev/allow-claims"
"""The label by which a namespace allows claims; only the value `true` counts."""
_ALLOWED: Final = f"{ALLOW_CLAIMS}=true"
MOST: Final = 64
"""The most paths of an annotation."""
_PREFIX: Final = "hedgerow.dev/"
_KNOWN: Final = (YIELD, CLAIM, f"{_PREFIX}status")
_MOST_UNKNOWN: Final = 4
_LONGEST_NAME: Final = 80

_ENTRY = re.compile(
    r"\s*(?P<kind>\*|[A-Z][A-Za-z0-9]*)/(?P<name>[a-z0-9.*-]++):(?P<paths>.*)",
    re.DOTALL,
)
_LOWER_KIND = re.compile(r"\s*([a-z][A-Za-z0-9.]*)/[^/:]+:")

# Fields that are never taken by force, even if claimed: identity, and what selects pods.
_IDENTITY = frozenset({
    "f:creationTimestamp", "f:generateName", "f:generation", "f:managedFields", "f:name",
    "f:namespace", "f:resourceVersion", "f:selfLink", "f:uid",
})  # fmt: skip
_SELECTS = frozenset({"f:namespaceSelector", "f:podSelector", "f:scaleTargetRef", "f:selector"})
_SERVICE_NAME = ("f:spec", "f:serviceName")
"""A StatefulSet's Service, which names its pods."""
_FREE = frozenset({
    "f:annotations", "f:binaryData", "f:data", "f:labels", "f:limits", "f:matchLabels",
    "f:nodeSelector", "f:requests", "f:stringData",
})  # fmt: skip
"""Maps with keys chosen by users: a key there is not a field with a meaning of its own."""

# The fields that make a child ours can be neither yielded nor claimed.
_OURS: tuple[FieldPath, ...] = (
    ("f:metadata", "f:finalizers"),
    ("f:metadata", "f:ownerReferences"),
)
_LABELS = ("f:metadata", "f:labels")
_MARKS = ("f:metadata", "f:annotations")
_MARK = "f:hedgerow.dev/"


class FieldPolicyError(ValueError):
    """An annotation that cannot be read; the text names the annotation and the invalid part."""


class PolicyEntry(Struct, frozen=True):
    """One entry: the objects and the field that it covers; `text` is as the user wrote it."""

    kind: str
    name: str
    path: FieldPatterns
    text: str

    def names(self, kind: str, name: str) -> bool:
        """Return whether the entry covers an object."""
        return self.kind in (ANY, kind) and self.name in (ANY, name)

    def covers(self, kind: str, name: str, place: FieldPath | str) -> bool:
        """Return whether the entry covers a field of an object.

        `place` may be a printed path; there, a key with dots counts as several steps.
        """
        steps = steps_of(place) if isinstance(place, str) else place
        return self.names(kind, name) and self.path.covers(steps)


@dataclass(frozen=True, slots=True)
class FieldPolicy:
    """The `yield` and `claim` entries of a resource's annotations; a field in both is yielded."""

    yields: tuple[PolicyEntry, ...] = ()
    claims: tuple[PolicyEntry, ...] = ()
    unknown: tuple[str, ...] = ()
    """A sentence for each annotation with our prefix that means nothing, such as a misspelt one."""
    _about: dict[tuple[str, str, str], _Entries] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=dict[tuple[str, str, str], "_Entries"],
    )

    def yielded(self, kind: str, name: str, field_path: FieldPath) -> bool:
        """Return whether the user leaves a field to whoever holds it."""
        return self._covered(YIELD, kind, name, field_path) and not is_ours(field_path)

    def claimed(self, kind: str, name: str, field_path: FieldPath) -> bool:
        """Return whether the user allows us to take a field back by force."""
        return (
            self._covered(CLAIM, kind, name, field_path)
            and not is_fixed(field_path)
            and not is_ours(field_path)
            and not self.yielded(kind, name, field_path)
        )

    def word(self, kind: str, name: str, path: tuple[str, ...]) -> Word:
        """Return which of the annotations has effect on a field, by the names of the fields."""
        field_path = tuple(f"f:{step}" for step in path)
        if self.yielded(kind, name, field_path):
            return "yield"
        return "claim" if self.claimed(kind, name, field_path) else ""

    def first(
        self, word: str, kind: str, name: str, places: Iterable[FieldPath]
    ) -> tuple[tuple[PolicyEntry, FieldPath], ...]:
        """Return the entries of one annotation that cover any of these fields, each with its first.

        They are in the order in which they were written. Some may have no effect.
        """
        policy_entries, patterns = self._entries_about(word, kind, name)
        matches = patterns.first(places) if policy_entries else {}
        return tuple((policy_entries[index], matches[index]) for index in sorted(matches))

    def _covered(self, word: str, kind: str, name: str, field_path: FieldPath) -> bool:
        policy_entries, patterns = self._entries_about(word, kind, name)
        return bool(policy_entries) and patterns.covers(field_path)

    def _entries_about(self, word: str, kind: str, name: str) -> _Entries:
        """Return the entries of one annotation about one object, and their patterns together."""
        written = self.yields if word == YIELD else self.claims
        if not written:
            return _NONE
        key = word, kind, name
        if key not in self._about:
            meant = tuple(entry for entry in written if entry.names(kind, name))
            together = chain.from_iterable(entry.path.patterns for entry in meant)
            self._about[key] = meant, FieldPatterns(tuple(together))
        return self._about[key]


_Entries = tuple[tuple[PolicyEntry, ...], FieldPatterns]
_NONE: Final[_Entries] = ((), FieldPatterns(()))

NO_FIELD_POLICY: Final = FieldPolicy()


def field_policy_of(annotations: Mapping[str, str]) -> FieldPolicy:
    """Return the policy in a resource's annotations. Raises FieldPolicyError if it is malformed."""
    yields, claims = (_parse_annotation(annotations, word) for word in (YIELD, CLAIM))
    unknown = tuple(unknown_annotations(annotations))
    return FieldPolicy(yields, claims, unknown) if yields or claims or unknown else NO_FIELD_POLICY


def unknown_annotations(annotations: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each annotation with our prefix that means nothing, at most four."""
    ours = (name for name in annotations if name.startswith(_PREFIX) and name not in _KNOWN)
    for name in islice(ours, _MOST_UNKNOWN):
        words = [known.removeprefix(_PREFIX) for known in _KNOWN]
        nearest = get_close_matches(name.removeprefix(_PREFIX)[:_LONGEST_NAME], words, 1)
        meant = f"; did you mean {_PREFIX}{nearest[0]}?" if nearest else ""
        yield f"{cut(name, _LONGEST_NAME)} is no annotation of hedgerow's{meant}"


def claims_refused(namespace: str) -> str:
    """Return the message for a resource whose namespace does not allow claims, or has none."""
    if not namespace:
        return f"{CLAIM} has no effect on a cluster-scoped resource: nothing is taken by force"
    return (
        f"{CLAIM} is not allowed in namespace {namespace}, and nothing is taken by force:"
        f" somebody who may label namespaces can allow it: `{allow_claims(namespace)}`"
    )


def allow_claims(namespace: str) -> str:
    """Return the command that lets a namespace allow claims."""
    return command_line("kubectl", "label", "namespace", namespace, _ALLOWED, "--overwrite")


def allows_claims(namespace: Mapping[str, Any]) -> bool:
    """Return whether a Namespace allows claims."""
    labels: Mapping[str, str] = metadata(namespace).get("labels") or {}
    return labels.get(ALLOW_CLAIMS) == "true"


def is_ours(field_path: FieldPath) -> bool:
    """Return whether a field marks a child as ours: owner, finalizers, label, our annotations."""
    if field_path[:2] == _MARKS:
        return any(step.startswith(_MARK) for step in field_path[2:3])
    return is_controller_label(field_path) or any(field_path[: len(mark)] == mark for mark in _OURS)


def is_controller_label(field_path: FieldPath) -> bool:
    """Return whether a field is the label by which a program's controller marks its children."""
    return field_path[:2] == _LABELS and any(
        labelling_program(step.removeprefix("f:")) for step in field_path[2:3]
    )


def is_fixed(field_path: FieldPath) -> bool:
    """Return whether a field identifies an object or list item, or selects pods."""
    if field_path[:1] == ("f:metadata",):
        return bool(_IDENTITY & set(field_path[1:2]))
    selects = any(
        step in _SELECTS and above not in _FREE
        for above, step in zip(("", *field_path), field_path, strict=False)
    )
    return selects or is_key(field_path) or field_path == _SERVICE_NAME


def place_of(path: str) -> FieldPath:
    """Return the steps of a printed path, precise enough for `is_ours` and `is_fixed`.

    For a list item they contain only the names of its keys.
    """
    field_path: list[str] = []
    steps = steps_of(path)
    for number, step in enumerate(steps):
        if step.startswith("["):
            names = dict.fromkeys(pair.partition("=")[0] for pair in keys(step))
            field_path.append(f"k:{to_ascii(names)}" if names else "v:null")
        elif not step.startswith("f:"):
            break
        elif field_path and field_path[-1] in _FREE:  # such a key may contain dots
            rest = (part if part.startswith("[") else f".{part[2:]}" for part in steps[number:])
            return (*field_path, f"f:{''.join(rest)[1:]}")
        else:
            field_path.append(step)
    return tuple(field_path)


def _parse_annotation(annotations: Mapping[str, str], name: str) -> tuple[PolicyEntry, ...]:
    text = annotations.get(name, "")
    if len(text) > LONGEST:
        raise FieldPolicyError(f"{name}: it is longer than {LONGEST} characters")
    try:
        policy_entries = tuple(parse(text))
    except FieldPolicyError as error:
        raise FieldPolicyError(f"{name}: {error}") from None
    if name in annotations and not policy_entries:
        raise FieldPolicyError(f"{name}: it names no field")
    return policy_entries


def parse(text: str) -> Iterator[PolicyEntry]:
    """Yield the entries of a text. Raises FieldPolicyError, which names the invalid entry."""
    count = 0
    for entry in parts(text):
        if not entry.strip():
            continue
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise FieldPolicyError(_no_entry(entry))
        if ANY in match["name"] and match["name"] != ANY:
            raise FieldPolicyError(
                f"{short(entry)}: * stands for a whole name: write {match['kind']}/*, or each name"
            )
        for path in _split(match["paths"], ","):
            count += 1
            if count > MOST:
                raise FieldPolicyError(f"there are more than {MOST} paths")
            text = f"{match['kind']}/{match['name']}: {path.strip()}"
            try:
                pattern = field_patterns.parse(path.strip())
            except FieldPatternError as error:
                raise FieldPolicyError(f"{short(entry)}: {error}") from None
            yield PolicyEntry(match["kind"], match["name"], FieldPatterns((pattern,)), text)


def _no_entry(entry: str) -> str:
    lower = _LOWER_KIND.match(entry)
    if lower:
        return (
            f"{short(entry)}: {short(lower[1])} is no kind: write it as a manifest does,"
            " with a capital, as in Deployment/*: spec.replicas"
        )
    return f"{short(entry)} is not KIND/NAME: PATH, as in Deployment/*: spec.replicas"


def parts(text: str) -> tuple[str, ...]:
    """Return a text's entries, split at semicolons and line ends outside quotes and brackets.

    A line end after a colon or a comma separates nothing: a path follows.
    """
    return tuple(_split(text, ";\n"))


def _split(text: str, separators: str) -> Iterator[str]:
    """Split at separators outside quotes and brackets."""
    depth, quoted, escaped, part, last = 0, False, False, "", ""
    for char in text:
        goes_on = char == "\n" and last and last in ":,"
        if not quoted and depth == 0 and char in separators and not goes_on:
            yield part
            part, last = "", ""
            continue
        part += char
        last = char if not char.isspace() else last
        if quoted:
            quoted = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        else:
            depth += (char == "[") - (char == "]")
    yield part


def unmatched(
    field_policy: FieldPolicy,
    live: Mapping[ChildId, Object],
    declared: Collection[ChildId],
    kinds: Collection[str],
) -> Generator[None, None, tuple[str, ...]]:
    """Return the entries that match nothing, as they were written, each with its annotation.

    It yields after each entry, and after each child. `declared` are the wanted children. The fields
    of a child that does not exist yet are unknown, so an entry for it counts as matching. So does
    one with `*` as name for a kind in `kinds`: such children may be created later.
    """
    words = ((YIELD, field_policy.yields), (CLAIM, field_policy.claims))
    written = [(word, entry) for word, policy_entries in words for entry in policy_entries]
    children = {*declared, *live}
    met = set[tuple[str, PolicyEntry]]()
    for word, entry in written:
        if _may_come(entry, children, live, kinds):
            met.add((word, entry))
        yield
    for word, policy_entries in words:
        for child, obj in live.items() if policy_entries else ():
            if any(entry.names(*child) and (word, entry) not in met for entry in policy_entries):
                matches = field_policy.first(word, *child, _members(obj))
                met.update((word, entry) for entry, _ in matches)
            yield
    return tuple(f"{word}: {entry.text}" for word, entry in written if (word, entry) not in met)


def _may_come(
    entry: PolicyEntry,
    children: Collection[ChildId],
    live: Collection[ChildId],
    kinds: Collection[str],
) -> bool:
    """Return whether an entry is for a child that does not exist yet: its fields are unknown."""
    meant = [child for child in children if entry.names(*child)]
    if meant:
        return any(child not in live for child in meant)
    return (entry.kind == ANY or entry.kind in kinds) and entry.name == ANY


def _members(live: Object) -> Iterator[FieldPath]:
    """Yield each place of an object that somebody holds."""
    for _, _, tree in entries(live):
        yield from members(tree)
