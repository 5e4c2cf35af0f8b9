"""Terms: which contested fields a user leaves to others (`yield`) or takes back (`claim`).

The grammar, as one writes it into an annotation of the resource:

    terms   = entry *( ( ";" / newline ) entry )
    entry   = kind "/" name ":" path *( "," path )
    kind    = a kind, or "*"
    name    = a child's name; one "*" in it stands for any characters
    path    = a field as conflicts name it, the first dot optional: spec.replicas,
              spec.template.spec.containers[name="web"].image

In a path `*` stands for any characters of a step, once in each, `[*]` for any item of a list, and
`**`, once in a path, for any steps: more of them would make a pattern that takes for ever to match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

YIELD: Final = "hedgerow.dev/yield"
CLAIM: Final = "hedgerow.dev/claim"
MOST: Final = 64
LONGEST: Final = 4096

_STRING = r'"(?:[^"\\]|\\.)*"'
_KEY = rf"[A-Za-z][A-Za-z0-9]*=(?:{_STRING}|-?[0-9]+|true|false)"
_ENTRY = re.compile(
    r"\s*(?P<kind>\*|[A-Z][A-Za-z0-9]*)/(?P<name>(?!:)[a-z0-9.-]*\*?[a-z0-9.-]*):(?P<paths>.*)",
    re.DOTALL,
)
_TOKEN = re.compile(
    rf"(?P<any>\*\*)|(?P<some>\*)|(?P<each>\[\*\])"
    rf"|(?P<item>\[(?:={_STRING}|=[^\s\[\]\",]+|{_KEY}(?:,{_KEY})*)\])"
    r"|(?P<dot>\.)|(?P<name>[^\s.,;:*\[\]\"=]+)"
)
_MEANS = {
    "any": r".*",
    "some": r"[^.\[\]]*",
    "each": rf"\[(?:{_STRING}|[^\]\"])*\]",
}
# What is not ours to move by force, whoever asks: identity, ownership, and what selects pods.
_UNCLAIMABLE = re.compile(
    r"\.metadata\.ownerReferences.*|\.(?:.*\.)?selector(?:[.\[].*)?|.*\]\.name|\.metadata\.name"
)


# What makes a child ours is neither given away nor fought over.
_OURS = re.compile(
    r"\.metadata\.(?:ownerReferences.*|finalizers.*"
    r"|labels\.hedgerow\.dev/controller|annotations\.hedgerow\.dev/.*)"
)


class TermsError(ValueError):
    """An annotation that cannot be read; its text names the annotation and the part at fault."""


@dataclass(frozen=True, slots=True)
class Term:
    """One pattern: the objects and the field that it is about."""

    kind: str
    name: re.Pattern[str]
    path: re.Pattern[str]

    def covers(self, kind: str, name: str, path: str) -> bool:
        """Tell whether a field of an object is meant; `path` is written as conflicts write it."""
        return (
            self.kind in ("*", kind)
            and self.name.fullmatch(name) is not None
            and self.path.fullmatch(path) is not None
        )


@dataclass(frozen=True, slots=True)
class Terms:
    """What a resource's annotations say of its children's fields; a field in both is yielded."""

    yields: tuple[Term, ...] = ()
    claims: tuple[Term, ...] = ()

    def yielded(self, kind: str, name: str, path: str) -> bool:
        """Tell whether a field is left to whoever holds it."""
        return any(term.covers(kind, name, path) for term in self.yields) and not is_ours(path)

    def claimed(self, kind: str, name: str, path: str) -> bool:
        """Tell whether a field may be taken back by force."""
        return (
            any(term.covers(kind, name, path) for term in self.claims)
            and not _UNCLAIMABLE.fullmatch(path)
            and not is_ours(path)
            and not self.yielded(kind, name, path)
        )


NO_TERMS: Final = Terms()


def terms_of(annotations: Mapping[str, str]) -> Terms:
    """Read a resource's annotations; raises TermsError for what cannot be read."""
    return Terms(_read(annotations, YIELD), _read(annotations, CLAIM))


def is_ours(path: str) -> bool:
    """Tell whether a field marks a child as ours: owner, finalizers, label, marks."""
    return _OURS.fullmatch(path) is not None


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
            raise TermsError(
                f"{entry.strip()!r} is not KIND/NAME: PATH, as in Deployment/*: spec.replicas"
            )
        name = re.compile(re.escape(found["name"]).replace(r"\*", ".*"))
        for path in _split(found["paths"], ","):
            count += 1
            if count > MOST:
                raise TermsError(f"there are more than {MOST} paths")
            yield Term(found["kind"], name, _path(path.strip(), entry.strip()))


def _path(text: str, entry: str) -> re.Pattern[str]:
    """Compile a path's pattern."""
    rest, at, pattern, wants_step, wild = "." + text.removeprefix("."), 0, "", False, set[str]()
    while at < len(rest):
        token = _TOKEN.match(rest, at)
        kind = str(token and token.lastgroup)
        if token is None or (wants_step and kind in ("dot", "each", "item")) or kind in wild:
            raise TermsError(f"{entry!r}: {text!r} is no path; it breaks at {rest[at:]!r}")
        pattern += _MEANS.get(kind, re.escape(token[0]))
        wants_step = kind == "dot"
        wild -= {"some"} if wants_step else set()
        wild |= {kind} & {"some", "any"}
        at = token.end()
    if wants_step:
        raise TermsError(f"{entry!r}: a path is missing, or ends in a dot")
    return re.compile(pattern, re.DOTALL)


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
