"""Policy: which contested fields a user leaves to others (`yield`) or takes back (`claim`).

The grammar, as one writes it into an annotation of the resource:

    terms   = entry *( ( ";" / newline ) entry )
    entry   = kind "/" name ":" path *( "," path )
    kind    = a kind, or "*"
    name    = a child's name; one "*" in it stands for any characters
    path    = a field as conflicts name it, the first dot optional: spec.replicas,
              spec.template.spec.containers[name="web"].image

In a path `*` stands for a whole step, such as a label's name with the dots in it, or, once in a
step, for any of its characters but dots; `[*]` stands for any item of a list, and `**`, once in a
path, for any steps: more of them would make a pattern that takes for ever to match. The keys of an
item may come in any order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields.managed import entries
from hedgerow.fields.paths import SELF, Tree, remembered, show
from hedgerow.fields.sets import Steps, is_key
from hedgerow.objects import CONTROLLER_LABEL, metadata
from hedgerow.validation import cut

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from hedgerow.fields.sets import Steps
    from hedgerow.plan.writes import ChildId
    from hedgerow_schemas.base import Object


YIELD: Final = "hedgerow.dev/yield"
CLAIM: Final = "hedgerow.dev/claim"
ALLOW_CLAIMS: Final = "hedgerow.dev/allow-claims"
"""The label by which a namespace allows claims; its one value that counts is `true`."""
MOST: Final = 64
LONGEST: Final = 4096
SHOWN: Final = 80
"""Characters of a term that an error repeats, at most."""

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
# Paths are matched with their steps told apart: a field begins with \0, a list item with \1.
_WHOLE_STEP = r"\x00[^\x00\x01]*(?=[\x00\x01]|\Z)"
_MEANS = {
    "any": r".*",
    "some": r"[^.\x00\x01]*",
    "each": r"\x01[^\x00\x01]*",
    "dot": r"[.\x00]",
}
_STEP = re.compile(rf"\.(?P<name>[^.\[]+)|\[(?P<item>(?:{_STRING}|[^\]\"])*)\]")
_PRINTED = re.compile(rf"(?P<item>\[(?:{_STRING}|[^\]\"])*\])|\.")

# What is not ours to move by force, whoever asks: identity, and what selects pods.
_IDENTITY = frozenset({
    "f:creationTimestamp", "f:generateName", "f:generation", "f:managedFields", "f:name",
    "f:namespace", "f:resourceVersion", "f:selfLink", "f:uid",
})  # fmt: skip
_SELECTS = frozenset({"f:namespaceSelector", "f:podSelector", "f:scaleTargetRef", "f:selector"})
_SERVICE_NAME = ("f:spec", "f:serviceName")
"""Of a StatefulSet: the Service that names its pods."""
_FREE = frozenset({
    "f:annotations", "f:binaryData", "f:data", "f:labels", "f:limits", "f:matchLabels",
    "f:nodeSelector", "f:requests", "f:stringData",
})  # fmt: skip
"""Maps whose keys users choose: a key there means nothing but itself."""

# What makes a child ours is neither given away nor fought over.
_OURS: tuple[Steps, ...] = (
    ("f:metadata", "f:finalizers"),
    ("f:metadata", "f:ownerReferences"),
    ("f:metadata", "f:labels", f"f:{CONTROLLER_LABEL}"),
)
_MARKS = ("f:metadata", "f:annotations")
_MARK = "f:hedgerow.dev/"


class TermsError(ValueError):
    """An annotation that cannot be read; its text names the annotation and the part at fault."""


@dataclass(frozen=True, slots=True)
class Term:
    """One pattern: the objects and the field that it is about; `text` is how it was written."""

    kind: str
    name: re.Pattern[str]
    path: re.Pattern[str]
    text: str

    def names(self, kind: str, name: str) -> bool:
        """Return whether an object is meant."""
        return self.kind in ("*", kind) and self.name.fullmatch(name) is not None

    def covers(self, kind: str, name: str, place: Steps | str) -> bool:
        """Return whether a field of an object is meant.

        A place may be given as conflicts print it, where a key with dots reads as several steps.
        """
        return self.names(kind, name) and self.path.fullmatch(_text(place)) is not None


@dataclass(frozen=True, slots=True)
class Terms:
    """What a resource's annotations say of its children's fields; a field in both is yielded."""

    yields: tuple[Term, ...] = ()
    claims: tuple[Term, ...] = ()
    _compiled: dict[tuple[str, str, str], re.Pattern[str] | None] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=dict[tuple[str, str, str], "re.Pattern[str] | None"],
    )

    def yielded(self, kind: str, name: str, steps: Steps) -> bool:
        """Return whether a field is left to whoever holds it."""
        return self._covered(YIELD, kind, name, steps) and not is_ours(steps)

    def claimed(self, kind: str, name: str, steps: Steps) -> bool:
        """Return whether a field may be taken back by force."""
        return (
            self._covered(CLAIM, kind, name, steps)
            and not is_fixed(steps)
            and not is_ours(steps)
            and not self.yielded(kind, name, steps)
        )

    def _covered(self, word: str, kind: str, name: str, steps: Steps) -> bool:
        terms = self.yields if word == YIELD else self.claims
        if not terms:
            return False
        key = word, kind, name
        if key not in self._compiled:
            self._compiled[key] = _any_of(terms, kind, name)
        pattern = self._compiled[key]
        return pattern is not None and pattern.fullmatch(_text(steps)) is not None


NO_TERMS: Final = Terms()


def terms_of(annotations: Mapping[str, str]) -> Terms:
    """Read a resource's annotations; raises TermsError for what cannot be read."""
    return Terms(_read(annotations, YIELD), _read(annotations, CLAIM))


def claims_refused(namespace: str) -> str:
    """Return the sentence that a resource gets whose namespace does not allow its claims."""
    return (
        f"{CLAIM} is not allowed in namespace {namespace}, and nothing is taken by force: whoever"
        f" may label namespaces allows it (kubectl label namespace {namespace} {ALLOW_CLAIMS}=true)"
    )


def allows_claims(namespace: Mapping[str, Any]) -> bool:
    """Return whether a Namespace allows claims."""
    labels: Mapping[str, str] = metadata(namespace).get("labels") or {}
    return labels.get(ALLOW_CLAIMS) == "true"


def is_ours(steps: Steps) -> bool:
    """Return whether a field marks a child as ours: owner, finalizers, label, marks."""
    if steps[:2] == _MARKS:
        return any(step.startswith(_MARK) for step in steps[2:3])
    return any(steps[: len(mark)] == mark for mark in _OURS)


def is_fixed(steps: Steps) -> bool:
    """Return whether a field says which object or list item it is, or which pods are meant."""
    if steps[:1] == ("f:metadata",):
        return bool(_IDENTITY & set(steps[1:2]))
    selects = any(
        step in _SELECTS and above not in _FREE
        for above, step in zip(("", *steps), steps, strict=False)
    )
    return selects or is_key(steps) or steps == _SERVICE_NAME


def place_of(path: str) -> Steps:
    """Return the steps of a path as conflicts print it, as far as `is_ours` and `is_fixed` ask.

    Of a list item only the names of its keys are given.
    """
    steps: list[str] = []
    end = 0
    while found := _STEP.match(path, end):
        keys = dict.fromkeys(pair.partition("=")[0] for pair in _PAIR.findall(found["item"] or ""))
        item = f"k:{json.dumps(keys)}" if keys else "v:null"
        steps.append(f"f:{found['name']}" if found["name"] else item)
        end = found.end()
        if steps[-1] in _FREE and path[end : end + 1] == ".":
            return (*steps, f"f:{path[end + 1 :]}")  # such a key may have dots in it
    return tuple(steps)


def _read(annotations: Mapping[str, str], name: str) -> tuple[Term, ...]:
    text = annotations.get(name, "")
    if len(text) > LONGEST:
        raise TermsError(f"{name}: it is longer than {LONGEST} characters")
    try:
        terms = tuple(parse(text))
    except TermsError as error:
        raise TermsError(f"{name}: {error}") from None
    if name in annotations and not terms:
        raise TermsError(f"{name}: it names no field")
    return terms


def parse(text: str) -> Iterator[Term]:
    """Read terms; raises TermsError that names the entry at fault."""
    count = 0
    for entry in _split(text, ";\n"):
        if not entry.strip():
            continue
        found = _ENTRY.fullmatch(entry)
        if found is None:
            lower = _LOWER_KIND.match(entry)
            if lower:
                raise TermsError(
                    f"{_short(entry)}: {_short(lower[1])} is no kind: write it as a manifest does,"
                    " with a capital, as in Deployment/*: spec.replicas"
                )
            raise TermsError(
                f"{_short(entry)} is not KIND/NAME: PATH, as in Deployment/*: spec.replicas"
            )
        name = re.compile(re.escape(found["name"]).replace(r"\*", ".*"))
        for path in _split(found["paths"], ","):
            count += 1
            if count > MOST:
                raise TermsError(f"there are more than {MOST} paths")
            text = f"{found['kind']}/{found['name']}: {path.strip()}"
            yield Term(found["kind"], name, _path(path.strip(), entry), text)


def parts(text: str) -> tuple[str, ...]:
    """Split a text into its entries, at semicolons and line ends that stand in no quotes."""
    return tuple(_split(text, ";\n"))


def _path(text: str, entry: str) -> re.Pattern[str]:
    """Compile a path's pattern."""
    rest, at, pattern, wants_step, wild = "." + text.removeprefix("."), 0, "", False, set[str]()
    while at < len(rest):
        token = _TOKEN.match(rest, at)
        kind = str(token and token.lastgroup)
        if token is None or (wants_step and kind in ("dot", "each", "item")) or kind in wild:
            hint = _BY_KEY if _INDEX.match(rest, at) else ""
            raise TermsError(
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
        raise TermsError(f"{_short(entry)}: a path is missing, or ends in a dot")
    return re.compile(pattern, re.DOTALL)


def _literal(kind: str, token: str) -> str:
    """Return the pattern of a name, or of a list item with its keys in the order of conflicts."""
    if kind != "item":
        return re.escape(token)
    pairs = sorted(_PAIR.findall(token), key=lambda pair: pair.partition("=")[0])
    return r"\x01" + re.escape(f"[{','.join(pairs)}]" if token[1] != "=" else token)


def _short(text: str) -> str:
    """Quote a part of a text that anybody wrote, as much of it as fits in a condition."""
    return cut(repr(text.strip()), SHOWN)


def _text(place: Steps | str) -> str:
    return _told_apart(place) if isinstance(place, str) else joined(place)


def joined(steps: Steps) -> str:
    """Write a place as one text, as the patterns of paths take it."""
    return "".join(map(_marked, steps))


def _any_of(terms: Iterable[Term], kind: str, name: str) -> re.Pattern[str] | None:
    """Return one pattern for all of an object's terms: to try each by itself costs many times more.

    None where no term is about the object.
    """
    paths = [f"(?:{term.path.pattern})" for term in terms if term.names(kind, name)]
    return re.compile("|".join(paths), re.DOTALL) if paths else None


@remembered
def _marked(element: str) -> str:
    shown = show(element).replace("\0", "").replace("\1", "")
    return f"\0{shown[1:]}" if shown.startswith(".") else f"\1{shown}"


def _told_apart(path: str) -> str:
    return _PRINTED.sub(lambda found: f"\1{found[0]}" if found["item"] else "\0", path)


def _split(text: str, separators: str) -> Iterator[str]:
    """Split at separators that stand neither in quotes nor in brackets."""
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
    terms: Terms,
    live: Mapping[ChildId, Object],
    declared: Collection[ChildId],
    kinds: Collection[str],
) -> tuple[str, ...]:
    """Return the terms that mean nothing, as they were written, each with its annotation.

    `declared` are the children that are wanted; of one that is not there yet no field is known.
    Nor is it known which children of a kind that is owned are still to come, by what names.
    """
    if not (terms.yields or terms.claims):
        return ()
    known = {child: tuple(map(joined, _places(obj))) for child, obj in live.items()}
    children = {**dict.fromkeys(declared), **known}
    worded = [(YIELD, term) for term in terms.yields] + [(CLAIM, term) for term in terms.claims]
    return tuple(
        f"{word}: {term.text}" for word, term in worded if not _is_met(term, children, kinds)
    )


def _is_met(
    term: Term, children: Mapping[ChildId, tuple[str, ...] | None], kinds: Collection[str]
) -> bool:
    meant = [places for child, places in children.items() if term.names(*child)]
    if not meant:
        return (term.kind == "*" or term.kind in kinds) and ".*" in term.name.pattern
    return any(places is None or any(map(term.path.fullmatch, places)) for places in meant)


def _places(live: Object) -> Iterator[Steps]:
    for _, _, tree in entries(live):
        yield from _held(tree, ())


def _held(tree: Tree, above: Steps) -> Iterator[Steps]:
    """Yield each place that is held itself, not only something within it."""
    for element, below in tree.items():
        if element == SELF:
            continue
        steps = (*above, element)
        if not below or SELF in below:
            yield steps
        yield from _held(below, steps)
