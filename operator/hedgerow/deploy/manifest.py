"""Manifest: writes and reads objects as YAML, as kubectl does."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import yaml

from hedgerow.errors import OneLineError
from hedgerow.fields.paths import is_list, is_map
from hedgerow.texts import escaped_lines

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from hedgerow_schemas.base import Object

LARGEST: Final = 3 * 1024 * 1024
"""The most characters of an object; the API server accepts no larger body."""
LONGEST: Final = 16 * LARGEST
"""The most characters of a text, which may have many objects."""
MOST: Final = 2 * LARGEST
"""The most characters of an object's values; a value is counted again for each alias of it."""
DEEPEST: Final = 100
"""The deepest nesting of maps and lists: no object needs more, and the stack can hold it."""
QUOTED: Final = 'as in schedule: "*/5 * * * *"'
_UNQUOTED: Final = re.compile(r"[^#]*\bschedule:\s*[*@]")
"""An unquoted schedule, which YAML reads as an alias or cannot read."""
_NO_UTF8: Final = re.compile("[\udc80-\udcff]")
"""What stands for bytes that are no UTF-8."""
_BINARY: Final = "tag:yaml.org,2002:binary"
_BOOL: Final = "tag:yaml.org,2002:bool"
_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_NULL: Final = "tag:yaml.org,2002:null"
_BOOLEAN: Final = re.compile(
    "(y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$"
)
_NOTHING: Final = re.compile("(~|null|Null|NULL|)$")
_INTEGER: Final = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_DECIMAL: Final = re.compile(r"[+-]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][+-]?[0-9]+)?")
_NO_JSON: Final = re.compile(r"[+-]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WHOLE: Final = 1e21
"""From this number on, Go writes a float with an exponent."""
_NOT_JSON: Final = ("set", "omap", "pairs")
_JSON: Final = re.compile(r"\s*\{")
_NEXT_JSON: Final = re.compile(r"(?<=\})(\s*\n)(?=\{)")
"""Between two JSON documents, as jq writes them: no single one has this, not even in a string."""


class ManifestError(OneLineError):
    """A text that cannot be read; the message says where and why."""


def objects_in(name: str, text: str) -> Iterator[Object]:
    """Yield the objects of a text in order; those of lists one by one, as kubectl does.

    Raises ManifestError, which begins with the text's name.
    """
    try:
        documents = from_yaml(text)
    except ManifestError as error:
        raise ManifestError(f"{name}: {error}") from error
    for document in documents:
        yield from _unfolded(name, document)


def _unfolded(name: str, document: Any) -> Iterator[Object]:
    if document is None:
        return
    if not is_map(document):
        raise ManifestError(f"{name}: it holds no Kubernetes object: a document has no fields")
    items, kind = document.get("items"), str(document.get("kind"))
    if not (kind.endswith("List") and is_list(items)):
        yield document
        return
    # An item of a BlueGreenList may leave out its kind.
    implied = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for item in items:
        known = is_map(item) and ("kind" in item or "apiVersion" in item)
        yield from _unfolded(name, item if known or not is_map(item) else {**implied, **item})


class _Dumper(yaml.CSafeDumper):
    """A dumper that writes a repeated dict again, because aliases are hard to read."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (the library's signature)
        return True


class _NumberPattern:
    """Stands in for a regular expression in the library's resolver."""

    def match(self, text: str) -> bool:
        try:
            return _number(text) is not None
        except ValueError:
            return True


class _Loader(yaml.CSafeLoader):
    """A loader that reads unquoted words as kubectl does, and makes keys strings.

    kubectl reads `y` and `n` as booleans, 1e3 as a number, and 12:30 and times as text
    (go.yaml.in/yaml/v2, resolve.go).
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, Any]]] = {  # noqa: RUF012 - the library's
        **{first: [(_BOOL, _BOOLEAN)] for first in "yYtTfFoO"},
        **{first: [(_BOOL, _BOOLEAN), (_NULL, _NOTHING)] for first in "nN"},
        **{first: [(_INT, _NumberPattern())] for first in "0123456789+-."},
        **{first: [(_NULL, _NOTHING)] for first in ("~", "")},
        "<": [("tag:yaml.org,2002:merge", re.compile("<<$"))],
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        if not isinstance(node, yaml.MappingNode):
            return super().construct_mapping(node, deep)  # refuses it
        self.flatten_mapping(node)
        build: Any = cast("Any", self).construct_object
        return {_key(build(key, deep=True), node): build(value, deep) for key, value in node.value}


for _tag in _NOT_JSON:
    _refused: Any = cast("Any", _Loader).construct_undefined
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _refused)


def _number(text: str) -> int | float | None:
    """Return a number as Go reads it for JSON: 010 is 8, 1e3 is 1000; None if it is not a number.

    Raises ValueError for a number that JSON cannot express.
    """
    plain = text if text.startswith(".") else text.replace("_", "")
    if match := _INTEGER.fullmatch(plain):
        sign, digits = match.groups()
        octal = digits[:1] == "0" and digits[1:2].isdecimal()
        number = int(f"{sign}{digits}", 8 if octal else 0)
        if -(2**63) <= number < 2**64:
            return number
    if _NO_JSON.fullmatch(plain):
        raise ValueError(f"{text} is no number in JSON")
    if not _DECIMAL.fullmatch(plain):
        return None
    value = float(plain)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:20]}… is no number that fits")
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


def _constructed(_loader: Any, node: yaml.ScalarNode) -> int | float:
    number = _number(node.value)
    if number is None:
        raise yaml.MarkedYAMLError(
            problem=f"{node.value[:20]!r} is no number", problem_mark=node.start_mark
        )
    return number


def _boolean(_loader: Any, node: yaml.ScalarNode) -> bool:
    if not _BOOLEAN.match(node.value):
        raise yaml.MarkedYAMLError(
            problem=f"{node.value[:20]!r} is neither true nor false", problem_mark=node.start_mark
        )
    return node.value.lower() in {"y", "yes", "true", "on"}


def _decoded(_loader: Any, node: yaml.ScalarNode) -> str:
    try:
        return b64decode("".join(node.value.splitlines()), validate=True).decode()
    except ValueError:
        raise yaml.MarkedYAMLError(
            problem=f"{node.value[:20]!r} is no text in base64", problem_mark=node.start_mark
        ) from None


# What is a word here must be in quotes for kubectl.
_quoting: Any = _Dumper
_quoting.add_implicit_resolver(_BOOL, _BOOLEAN, [*"yYnN"])
_quoting.add_implicit_resolver(_FLOAT, _NumberPattern(), [*"0123456789+-."])
for _tag in (_INT, _FLOAT):
    _Loader.add_constructor(_tag, _constructed)
_Loader.add_constructor(_BOOL, _boolean)
_Loader.add_constructor(_BINARY, _decoded)


_ENDLESS = 2**31 - 1
"""The width of a line that ends nowhere, as libyaml takes it."""


def to_yaml(*objects: Mapping[str, Any], folded: bool = True) -> str:
    """Return one or more objects as YAML documents, keys in the order given.

    If not all of their text is printable, all but ASCII is escaped. Unless it is `folded`, a text
    takes one line: no words of somebody else begin one.
    """
    width = 100 if folded else _ENDLESS
    text = _dumped(objects, width, allow_unicode=True)
    return text if escaped_lines(text) == text else _dumped(objects, width, allow_unicode=False)


def _dumped(objects: Sequence[Mapping[str, Any]], width: int, *, allow_unicode: bool) -> str:
    return yaml.dump_all(
        [dict(obj) for obj in objects],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=allow_unicode,
        width=width,
        explicit_start=len(objects) > 1,
    )


def from_yaml(text: str) -> tuple[Any, ...]:
    """Return all documents of a YAML or JSON text; raises ManifestError.

    Size and depth are checked before anything is built. With aliases, a few lines can stand for
    more than fits in memory, or refer to themselves without end. Building ten thousand levels
    would crash libyaml and with it the process.
    """
    if len(text) > LONGEST:
        raise ManifestError(f"it is larger than {LONGEST // 1024**2} MiB")
    if not text.isascii() and _NO_UTF8.search(text):
        raise ManifestError("it is no text in UTF-8; give YAML or JSON")
    if _JSON.match(text):
        text = _NEXT_JSON.sub(r"\1--- ", text)
    try:
        _refuse_depth(text)
        return tuple(_documents(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        hint = _hint(text, mark.line) if mark else ""
        raise ManifestError(f"{where}{problem}{hint}") from error
    except ManifestError:
        raise
    except ValueError as error:
        # A number of thousands of digits, or a text that names no character.
        raise ManifestError(f"a value cannot be read: {error}") from error


def _refuse_depth(text: str) -> None:
    """Raise ManifestError for a text that is nested too deeply; reading events needs no stack."""
    depth = 0
    events: Iterable[Any] = cast("Any", yaml).parse(text, Loader=_Loader)
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise _too_deep(event.start_mark)


def _too_deep(mark: yaml.Mark) -> ManifestError:
    return ManifestError(f"line {mark.line + 1}: it is nested more than {DEEPEST} levels deep")


def _hint(text: str, number: int) -> str:
    """Return a hint if YAML cannot read a schedule that is not quoted; else an empty string."""
    line = "".join(text.splitlines()[number : number + 1])
    return f"; quote the schedule, {QUOTED}" if _UNQUOTED.match(line) else ""


def _documents(text: str) -> Iterator[Any]:
    loader: Any = _Loader(text)
    total = 0
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            known: dict[int, _Measure | None] = {}
            total += _measured(node, known).weight
            if total > 2 * LONGEST:
                raise ManifestError(f"its aliases stand for more than {2 * LONGEST // 1024**2} MiB")
            for part in _objects(node):
                _refuse_size(part, _measured(part, known).weight)
            yield loader.construct_document(node)
    finally:
        loader.dispose()


def _objects(node: Any) -> Iterator[yaml.Node]:
    """Yield the node of each object of a document, which may be a list of several."""
    fields = node.value if isinstance(node, yaml.MappingNode) else ()
    items = next((value for name, value in fields if name.value == "items"), None)
    yield from items.value if isinstance(items, yaml.SequenceNode) else (node,)


def _refuse_size(node: yaml.Node, weight: int) -> None:
    """Raise ManifestError for an object that is too large."""
    where = f"line {node.start_mark.line + 1}: the object"
    if node.end_mark.index - node.start_mark.index > LARGEST:
        raise ManifestError(f"{where} is larger than {LARGEST // 1024**2} MiB")
    if weight > MOST:
        raise ManifestError(f"{where}'s aliases stand for more than {MOST // 1024**2} MiB")


class _Measure(NamedTuple):
    """The number of characters and levels of a node, including those behind aliases."""

    weight: int
    depth: int


def _measured(node: yaml.Node, known: dict[int, _Measure | None]) -> _Measure:
    """Return a node's measure; `known` has those of other nodes, None for one in progress."""
    if isinstance(node, yaml.ScalarNode):
        return _Measure(1 + len(node.value), 0)
    if id(node) not in known:
        known[id(node)] = None
        parts = [_measured(below, known) for below in _below(node)]
        depth = 1 + max((below.depth for below in parts), default=0)
        if depth > DEEPEST:
            raise _too_deep(node.start_mark)
        known[id(node)] = _Measure(1 + sum(below.weight for below in parts), depth)
    measure = known[id(node)]
    if measure is None:
        raise ManifestError(f"line {node.start_mark.line + 1}: it is nested within itself")
    return measure


def _below(node: Any) -> Iterator[yaml.Node]:
    for below in node.value:
        yield from below if isinstance(below, tuple) else (below,)


def _key(key: Any, node: yaml.Node) -> str:
    """Return a key as JSON writes it."""
    if isinstance(key, bool):
        return str(key).lower()
    if not isinstance(key, str | int | float):
        raise yaml.MarkedYAMLError(
            problem=f"the key {key!r} is no string", problem_mark=node.start_mark
        )
    return str(key)
