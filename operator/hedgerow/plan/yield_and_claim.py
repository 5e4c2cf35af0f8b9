"""Yield and claim: which contested fields a user leaves to others, and which are taken back.

The grammar of the resource's annotation:

    terms   = entry *( ( ";" / newline ) entry )
    entry   = kind "/" name ":" path *( "," path )
    kind    = a kind, or "*"
    name    = a child's name; one "*" in it stands for any characters
    path    = a field as conflicts print it, without or with the first dot: spec.replicas,
              spec.template.spec.containers[name="web"].image

In a path, `*` alone stands for one whole step, such as a label's name with dots in it. Once within
a step, `*` stands for any characters except dots. `[*]` stands for any item of a list. `**` stands
for any number of steps and may be used once in a path: with more, matching could take very long.
The keys of a list item may come in any order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hedgerow.fields.managed import entries
from hedgerow.fields.paths import SELF, Tree, remembered, show
from hedgerow.fields.sets import FieldPath, is_key
from hedgerow.objects import labelling_program, metadata
from hedgerow.validation import cut

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from hedgerow.contract import Word
    from hedgerow.fields.sets import FieldPath
    from hedgerow.plan.writes import ChildId
    from hedgerow_schemas.base import Object


YIELD: Final = "hedgerow.dev/yield"
CLAIM: Final = "hedgerow.dev/claim"
ALLOW_CLAIMS: Final = "hedgerow.dev/allow-claims"
"""The label by which a namespace allows claims; only the value `true` counts."""
MOST: Final = 64
LONGEST: Final = 4096
SHOWN: Final = 80
"""The most characters of a term that an error repeats."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_KEY = rf"[A-Za-z][A-Za-z0-9]*=(?:{_STRING}|-?[0-9]+|true|false)"
_ENTRY = re.compile(
    r"\s*(?P<kind>\*|[A-Z][A-Za-z0-9]*)/(?P<name>(?!:)[a-z0-9.-]*\*?[a-z0-9.-]*):(?P<paths>.*)",
    re.DOTALL,
)
_LOWER_KIND = re.compile(r"\s*([a-z][A-Za-z0-9.]*)/[^/:]+:")
_INDEX = re.compile(r"\[[0-9]+\]")
_BY_KEY = '; a list item is named by its keys: [name="web"], or [*] for all of them'
_TOKEN = re.compile(
    rf"(?P<any>\*\*)|(?P<some>\*)|(?P<each>\[\*\])"
    rf"|(?P<item>\[(?:={_STRING}|=[^\s\[\]\",]+|{_KEY}(?:,{_KEY})*)\])"
    r"|(?P<dot>\.)|(?P<name>[^\s.,;:*\[\]\"=]+)"
)
_PAIR = re.compile(_KEY)
# Patterns match a text in which each step is marked: \0 before a field, \1 before a list item.
_WHOLE_STEP = r"\x00[^\x00\x01]*(?=[\x00\x01]|\Z)"
_MEANS = {
    "any": r".*",
    "some": r"[^.\x00\x01]*",
    "each": r"\x01[^\x00\x01]*",
    "dot": r"[.\x00]",
}
_STEP = re.compile(rf"\.(?P<name>[^.\[]+)|\[(?P<item>(?:{_STRING}|[^\]\"])*)\]")
_PRINTED = re.compile(rf"(?P<item>\[(?:{_STRING}|[^\]\"])*\])|\.")

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
    """One pattern: the objects and the field that it covers; `text` is as the user wrote it."""

    kind: str
    name: re.Pattern[str]
    path: re.Pattern[str]
    text: str

    def names(self, kind: str, name: str) -> bool:
        """Return whether the term covers an object."""
        return self.kind in ("*", kind) and self.name.fullmatch(name) is not None

    def covers(self, kind: str, name: str, place: FieldPath | str) -> bool:
        """Return whether the term covers a field of an object.

        `place` may be a printed path; there, a key with dots counts as several steps.
        """
        return self.names(kind, name) and self.path.fullmatch(_text(place)) is not None


@dataclass(frozen=True, slots=True)
class FieldPolicy:
    """What a resource's annotations say about its children's fields; a field in both is yielded."""

    yields: tuple[PolicyEntry, ...] = ()
    claims: tuple[PolicyEntry, ...] = ()
    _compiled: dict[tuple[str, str, str], re.Pattern[str] | None] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=dict[tuple[str, str, str], "re.Pattern[str] | None"],
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

    def _covered(self, word: str, kind: str, name: str, field_path: FieldPath) -> bool:
        policy_entries = self.yields if word == YIELD else self.claims
        if not policy_entries:
            return False
        key = word, kind, name
        if key not in self._compiled:
            self._compiled[key] = _any_of(policy_entries, kind, name)
        pattern = self._compiled[key]
        return pattern is not None and pattern.fullmatch(_text(field_path)) is not None


NO_FIELD_POLICY: Final = FieldPolicy()


def field_policy_of(annotations: Mapping[str, str]) -> FieldPolicy:
    """Return the policy in a resource's annotations. Raises FieldPolicyError if it is malformed."""
    yields, claims = _read(annotations, YIELD), _read(annotations, CLAIM)
    return FieldPolicy(yields, claims) if yields or claims else NO_FIELD_POLICY


def claims_refused(namespace: str) -> str:
    """Return the message for a resource whose namespace does not allow claims, or has none."""
    if not namespace:
        return f"{CLAIM} has no effect on a cluster-scoped resource: nothing is taken by force"
    return (
        f"{CLAIM} is not allowed in namespace {namespace}, and nothing is taken by force:"
        f" somebody who may label namespaces can allow it (kubectl label namespace"
        f" {namespace} {ALLOW_CLAIMS}=true)"
    )


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
    end = 0
    while found := _STEP.match(path, end):
        keys = dict.fromkeys(pair.partition("=")[0] for pair in _PAIR.findall(found["item"] or ""))
        item = f"k:{json.dumps(keys)}" if keys else "v:null"
        field_path.append(f"f:{found['name']}" if found["name"] else item)
        end = found.end()
        if field_path[-1] in _FREE and path[end : end + 1] == ".":
            return (*field_path, f"f:{path[end + 1 :]}")  # such a key may contain dots
    return tuple(field_path)


def _read(annotations: Mapping[str, str], name: str) -> tuple[PolicyEntry, ...]:
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
    """Yield the terms of a text. Raises FieldPolicyError, which names the invalid entry."""
    count = 0
    for entry in _split(text, ";\n"):
        if not entry.strip():
            continue
        found = _ENTRY.fullmatch(entry)
        if found is None:
            lower = _LOWER_KIND.match(entry)
            if lower:
                raise FieldPolicyError(
                    f"{_short(entry)}: {_short(lower[1])} is no kind: write it as a manifest does,"
                    " with a capital, as in Deployment/*: spec.replicas"
                )
            raise FieldPolicyError(
                f"{_short(entry)} is not KIND/NAME: PATH, as in Deployment/*: spec.replicas"
            )
        name = re.compile(re.escape(found["name"]).replace(r"\*", ".*"))
        for path in _split(found["paths"], ","):
            count += 1
            if count > MOST:
                raise FieldPolicyError(f"there are more than {MOST} paths")
            text = f"{found['kind']}/{found['name']}: {path.strip()}"
            yield PolicyEntry(found["kind"], name, _path(path.strip(), entry), text)


def parts(text: str) -> tuple[str, ...]:
    """Return a text's entries, split at semicolons and line ends outside quotes and brackets."""
    return tuple(_split(text, ";\n"))


def _path(text: str, entry: str) -> re.Pattern[str]:
    """Return a path as a regular expression. Raises FieldPolicyError."""
    rest, at, pattern, wants_step, wild = "." + text.removeprefix("."), 0, "", False, set[str]()
    while at < len(rest):
        token = _TOKEN.match(rest, at)
        kind = str(token and token.lastgroup)
        if token is None or (wants_step and kind in ("dot", "each", "item")) or kind in wild:
            hint = _BY_KEY if _INDEX.match(rest, at) else ""
            raise FieldPolicyError(
                f"{_short(entry)}: {_short(text)} is no path;"
                f" it breaks at {_short(rest[at:])}{hint}"
            )
        if kind == "some" and wants_step and rest[token.end() : token.end() + 1] in (".", "[", ""):
            pattern = pattern.removesuffix(_MEANS["dot"]) + _WHOLE_STEP
        else:
            pattern += _MEANS.get(kind) or _literal(kind, token[0])
        wants_step = kind == "dot"
        wild -= {"some"} if wants_step else set()
        wild |= {kind} & {"some", "any"}
        at = token.end()
    if wants_step:
        raise FieldPolicyError(f"{_short(entry)}: a path is missing, or ends in a dot")
    return re.compile(pattern, re.DOTALL)


def _literal(kind: str, token: str) -> str:
    """Return the pattern of a name, or of a list item with sorted keys, as conflicts print it."""
    if kind != "item":
        return re.escape(token)
    pairs = sorted(_PAIR.findall(token), key=lambda pair: pair.partition("=")[0])
    return r"\x01" + re.escape(f"[{','.join(pairs)}]" if token[1] != "=" else token)


def _short(text: str) -> str:
    """Return a part of a user's text in quotes, cut to a length that fits in a condition."""
    return cut(repr(text.strip()), SHOWN)


def _text(place: FieldPath | str) -> str:
    return _told_apart(place) if isinstance(place, str) else joined(place)


def joined(field_path: FieldPath) -> str:
    """Return a place as one text that the patterns of paths can match."""
    return "".join(map(_marked, field_path))


def _any_of(policy_entries: Iterable[PolicyEntry], kind: str, name: str) -> re.Pattern[str] | None:
    """Return one pattern for all terms that cover an object, or None if there are none.

    Trying each term by itself would take many times longer.
    """
    paths = [
        f"(?:{policy_entry.path.pattern})"
        for policy_entry in policy_entries
        if policy_entry.names(kind, name)
    ]
    return re.compile("|".join(paths), re.DOTALL) if paths else None


@remembered
def _marked(element: str) -> str:
    shown = show(element).replace("\0", "").replace("\1", "")
    return f"\0{shown[1:]}" if shown.startswith(".") else f"\1{shown}"


def _told_apart(path: str) -> str:
    return _PRINTED.sub(lambda found: f"\1{found[0]}" if found["item"] else "\0", path)


def _split(text: str, separators: str) -> Iterator[str]:
    """Split at separators outside quotes and brackets."""
    depth, quoted, escaped, part = 0, False, False, ""
    for char in text:
        if not quoted and depth == 0 and char in separators:
            yield part
            part = ""
            continue
        part += char
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
) -> tuple[str, ...]:
    """Return the terms that match nothing, as they were written, each with its annotation.

    `declared` are the wanted children. The fields of a child that does not exist yet are unknown,
    so a term for it counts as matching. So does a term with `*` in the name for a kind in `kinds`:
    such children may be created later.
    """
    if not (field_policy.yields or field_policy.claims):
        return ()
    known = {child: tuple(map(joined, _places(obj))) for child, obj in live.items()}
    children = {**dict.fromkeys(declared), **known}
    worded = [(YIELD, policy_entry) for policy_entry in field_policy.yields] + [
        (CLAIM, policy_entry) for policy_entry in field_policy.claims
    ]
    return tuple(
        f"{word}: {policy_entry.text}"
        for word, policy_entry in worded
        if not _is_met(policy_entry, children, kinds)
    )


def _is_met(
    policy_entry: PolicyEntry,
    children: Mapping[ChildId, tuple[str, ...] | None],
    kinds: Collection[str],
) -> bool:
    meant = [places for child, places in children.items() if policy_entry.names(*child)]
    if not meant:
        return (
            policy_entry.kind == "*" or policy_entry.kind in kinds
        ) and ".*" in policy_entry.name.pattern
    return any(places is None or any(map(policy_entry.path.fullmatch, places)) for places in meant)


def _places(live: Object) -> Iterator[FieldPath]:
    for _, _, tree in entries(live):
        yield from _held(tree, ())


def _held(tree: Tree, above: FieldPath) -> Iterator[FieldPath]:
    """Yield each place that is held itself, not only something below it."""
    for element, below in tree.items():
        if element == SELF:
            continue
        field_path = (*above, element)
        if not below or SELF in below:
            yield field_path
        yield from _held(below, field_path)
