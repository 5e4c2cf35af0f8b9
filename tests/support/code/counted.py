"""Counted: the pure modules loaded once more, each operation of theirs counted by what it costs.

A line that runs is no measure of work: `element in chosen` is one line, and reads a whole list. So
the source is rewritten on its way in. Each call, turn of a loop and item of a comprehension counts
as one step; what the interpreter does at one go counts as many as the items that it may look at:
`in` on a list, `==` of two trees, `{**a}`, `a + b`, a slice, `list(a)`, `sorted(a)`, `repr(a)`.
Caches of functions begin empty, so that no run has it easier than another.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import operator
import sys
from collections import deque
from collections.abc import (
    Callable,
    Collection,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import chain, compress, count, islice
from types import ModuleType
from typing import Any

from msgspec import Struct, structs
from pydantic import BaseModel

PACKAGES = (
    "hedgerow.cli", "hedgerow.contract", "hedgerow.controllers", "hedgerow.encoding",
    "hedgerow.fields", "hedgerow.objects", "hedgerow.plan", "hedgerow.serving.admission",
    "hedgerow.shard", "hedgerow.texts", "hedgerow.validation", "hedgerow.workloads",
    "hedgerow_schemas",
)  # fmt: skip
_COUNTER = "_counter_"
_SIZED = (list, tuple, dict, set, frozenset, deque, KeysView, ValuesView, ItemsView)
_LAZY = {map, zip, filter, enumerate, reversed, chain, islice}
_MODELS = type(BaseModel)
_SEARCHED = (list, tuple, deque, ValuesView, str)
_CHARACTERS = 64
"""Of a text this many are read in one step."""
_SORTED = 8
"""How many steps each item of a sort counts, however many there are: log n hides no square."""
_AT_ONCE = frozenset({
    "bool", "callable", "cast", "get", "getattr", "hasattr", "id", "isinstance", "issubclass",
    "items", "iter", "keys", "len", "next", "partial", "append", "appendleft", "add", "discard",
    "popleft", "popitem", "setdefault", "type", "values", "__setattr__",
})  # fmt: skip
"""What takes the same time for a large container as for a small one."""
_AT_AN_END = frozenset({"startswith", "endswith"})
"""What looks at no more of a text than it is given."""


class TooMany(Exception):
    """More steps were taken than were granted."""


class Counter:
    """Counts steps; what it is asked to do it does, and hands back what comes of it."""

    def __init__(self) -> None:
        self.steps = 0
        self.granted = float("inf")
        # Of the items of loops: true numbers, so that `compress` lets each item through.
        self._turns = count(1)
        self._memories: list[dict[Any, Any]] = []

    def count(self, work: Callable[[], object], granted: float = float("inf")) -> int:
        """Do some work, lazy results taken to their end; give its steps. Raises TooMany."""
        self.steps, self.granted, self._turns = 0, granted, count(1)
        for memory in self._memories:
            memory.clear()
        try:
            found = work()
            if isinstance(found, Iterator):
                deque(found, maxlen=0)
            self.charge(next(self._turns) - 1, least=0)
        finally:
            self.granted = float("inf")
        return max(1, self.steps)

    def charge(self, steps: int = 1, least: int = 1) -> None:
        self.steps += steps or least
        if self.steps > self.granted:
            raise TooMany(f"more than {self.granted:.0f} steps")

    def remembering(self, **_: Any) -> Callable[[Any], Any]:
        """Stand in for `lru_cache`; nothing is ever pushed out."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            known: dict[Any, Any] = {}
            self._memories.append(known)

            @functools.wraps(function)
            def remembered(*arguments: Any) -> Any:
                if arguments not in known:
                    known[arguments] = function(*arguments)
                return known[arguments]

            vars(remembered)["cache_clear"] = known.clear
            return remembered

        return decorate

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        """Count each item as it is taken, without a line of Python for it."""
        return compress(items, self._turns)

    def sized(self, value: Any) -> Any:
        self.charge(_size(value))
        return value

    def contains(self, item: Any, container: Any) -> bool:
        self.charge(_size(container) if _is(type(container), _SEARCHED) else 1)
        return item in container

    def equal(self, left: Any, right: Any) -> Any:
        self.charge(_compared(left, right))
        return left == right

    def unequal(self, left: Any, right: Any) -> Any:
        self.charge(_compared(left, right))
        return left != right

    def combine(self, name: str, left: Any, right: Any) -> Any:
        self.charge(_size(left) + _size(right))
        return getattr(operator, name)(left, right)

    def extend(self, name: str, left: Any, right: Any) -> Any:
        grows = isinstance(left, list | dict | set | str)  # in place; a text mostly is too
        self.charge(_size(right) + (0 if grows else _size(left)))
        return getattr(operator, f"i{name.rstrip('_')}")(left, right)

    def delete(self, container: Any) -> None:
        self.charge(_size(container) if isinstance(container, list) else 1)

    def call(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        self.steps += 1
        if self.steps > self.granted:
            raise TooMany(f"more than {self.granted:.0f} steps")
        model = isinstance(function, _MODELS)
        if model or not _is_ours(getattr(function, "__module__", None)):
            read = (*args, *named.values()) if named else args
            self._charge_foreign(function, read, deep=model)
        found = function(*args, **named)
        return compress(found, self._turns) if type(found) in _LAZY else found

    def _charge_foreign(self, function: Any, args: tuple[Any, ...], *, deep: bool) -> None:
        name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
        if name in _AT_ONCE or (name == "pop" and (isinstance(owner, dict) or not args)):
            return
        is_replace = function is structs.replace  # it takes the fields as they are
        reads = _reads_deep(getattr(function, "__module__", None)) and not is_replace
        deep = deep or name == "repr" or reads
        whole = owner is not None and not isinstance(owner, ModuleType) and name not in _AT_AN_END
        read = (owner, *args) if whole else args
        sorts = name in ("sorted", "sort")
        for value in read:
            size = _deep(value) if deep else _size(value)
            self.steps += (size * _SORTED if sorts else size) or 1
        if self.steps > self.granted:
            raise TooMany(f"more than {self.granted:.0f} steps")


def _size(value: Any) -> int:
    kind = type(value)
    if kind is str:
        return 1 + len(value) // _CHARACTERS
    return len(value) if _is(kind, _SIZED) else 0


@functools.cache
def _is(kind: type, kinds: tuple[type, ...]) -> bool:
    """Return of a type whether it is one of some; to ask an abstract one takes long."""
    return issubclass(kind, kinds)


@functools.cache
def _reads_deep(module: str | None) -> bool:
    return str(module).partition(".")[0] in ("json", "msgspec", "pydantic", "pydantic_core")


def _deep(value: Any) -> int:
    if BaseModel in type(value).__mro__:
        return 1 + sum(map(_deep, value.__dict__.values()))
    if isinstance(value, Struct):
        return 1 + sum(_deep(getattr(value, name)) for name in value.__struct_fields__)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return 1 + sum(_deep(getattr(value, field.name, None)) for field in fields)
    if _is(type(value), (Mapping,)):
        return 1 + sum(_deep(inner) for inner in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return 1 + sum(map(_deep, value))
    return max(1, _size(value))


def _compared(left: Any, right: Any) -> int:
    """Return at how many places two values are compared, if they are equal."""
    if left is right or type(left) is not type(right):
        return 1
    if _is(type(left), _SIZED) and len(left) != len(right):
        return 1
    if isinstance(left, dict):
        return 1 + sum(_compared(inner, right.get(key)) for key, inner in left.items())
    if isinstance(left, list | tuple):
        return 1 + sum(map(_compared, left, right))
    return _deep(left)


@functools.cache
def _is_ours(module: str | None) -> bool:
    return str(module).startswith(PACKAGES)


class _Rewrite(ast.NodeTransformer):
    """Has everything that happens in a function counted."""

    def __init__(self, ours: Collection[str]) -> None:
        self._ours = ours
        self._depth = 0

    def _function(self, node: Any) -> Any:
        self._depth += 1
        visited: Any = self.generic_visit(ast.Module(node.body, []))  # a statement may become two
        node.body = [*_STEP.body, *visited.body]
        self._depth -= 1
        return node

    visit_FunctionDef = _function  # noqa: N815 - the name that ast looks for

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self._depth += 1
        node.body = self.visit(node.body)
        self._depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        # Inside of functions only: what a module does on import is done once.
        if self._depth == 0 and not isinstance(node, ast.Module | ast.ClassDef | ast.If):
            return node
        return super().generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if not any(alias.name == "lru_cache" for alias in node.names):
            return node
        source = f"lru_cache = {_COUNTER}.remembering"
        return [node, *ast.parse(source).body]

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if self._depth == 0 or self._counts_itself(node.func):
            return node
        keywords = [
            keyword if keyword.arg else ast.keyword(None, _asked("sized", keyword.value))
            for keyword in node.keywords
        ]
        return _asked("call", node.func, *node.args, keywords=keywords)

    def _counts_itself(self, function: ast.expr) -> bool:
        """Return of functions of ours, whose first step is counted, and of what is done at once."""
        match function:
            case ast.Name(name):
                return name in _AT_ONCE or name in self._ours or name == "super"
            case ast.Attribute(attr=name):
                return name in _AT_ONCE
            case _:
                return False

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if self._depth == 0 or len(node.ops) > 1:
            return node
        operands = node.left, node.comparators[0]
        match node.ops[0]:
            case ast.In():
                return _asked("contains", *operands)
            case ast.NotIn():
                return ast.UnaryOp(ast.Not(), _asked("contains", *operands))
            case ast.Eq():
                return _asked("equal", *operands)
            case ast.NotEq():
                return _asked("unequal", *operands)
            case _:
                return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        if self._depth == 0 or name is None:
            return node
        return _asked("combine", ast.Constant(name), node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        if self._depth == 0 or name is None or not isinstance(node.target, ast.Name):
            return node
        now = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], _asked("extend", ast.Constant(name), now, node.value))

    def visit_Starred(self, node: ast.Starred) -> Any:
        self.generic_visit(node)
        if self._depth and isinstance(node.ctx, ast.Load):
            node.value = _asked("each", node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        if self._depth:
            node.values = [
                value if key else _asked("sized", value)
                for key, value in zip(node.keys, node.values, strict=True)
            ]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        sliced = isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load)
        return _asked("sized", node) if self._depth and sliced else node

    def visit_Delete(self, node: ast.Delete) -> Any:
        self.generic_visit(node)
        places = [target for target in node.targets if isinstance(target, ast.Subscript)]
        return [*(ast.Expr(_asked("delete", place.value)) for place in places), node]

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.iter = _asked("each", node.iter)
        return node

    def visit_While(self, node: ast.While) -> Any:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_asked("charge")))
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        if self._depth:
            node.iter = _asked("each", node.iter)
        return node


_STEP = ast.parse(f"{_COUNTER}.steps += 1")
_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.BitOr: "or_", ast.BitAnd: "and_", ast.Sub: "sub",
}  # fmt: skip


def _asked(name: str, *args: ast.expr, keywords: Iterable[ast.keyword] = ()) -> ast.Call:
    method = ast.Attribute(ast.Name(_COUNTER, ast.Load()), name, ast.Load())
    return ast.Call(method, list(args), list(keywords))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, counter: Counter) -> None:
        super().__init__(name, path)
        self._counter = counter

    def get_code(self, fullname: str) -> Any:
        tree = rewritten(self.get_data(self.path).decode())
        # Under another name, for it is not what stands in the file.
        return compile(tree, f"<counted {fullname}>", "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[_COUNTER] = self._counter
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(PACKAGES):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._counter)
        return spec


def rewritten(source: str) -> ast.Module:
    """Return a module's source with everything counted."""
    tree = ast.parse(source)
    return ast.fix_missing_locations(_Rewrite(frozenset(_functions(tree))).visit(tree))


def _functions(tree: ast.Module) -> Iterator[str]:
    """Yield the names by which a module calls functions of ours."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGES):
            yield from (alias.asname or alias.name for alias in node.names if alias.name.islower())


def run(source: str, counter: Counter) -> dict[str, Any]:
    """Run a module's source with everything counted; give its names."""
    names: dict[str, Any] = {_COUNTER: counter, "__name__": "hedgerow.plan.made_up"}
    exec(compile(rewritten(source), "<counted>", "exec"), names)  # noqa: S102 - our own source
    return names


def load(counter: Counter, modules: Iterable[str]) -> dict[str, ModuleType]:
    """Load modules once more, counted; what was loaded before stays as it was."""
    before = {
        name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(PACKAGES)
    }
    parents = {name: dict(vars(sys.modules[name])) for name in ("hedgerow",) if name in sys.modules}
    finder = _Finder(counter)
    sys.meta_path.insert(0, finder)
    try:
        return {name: import_module(name) for name in modules}
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.startswith(PACKAGES)]:
            del sys.modules[name]
        sys.modules.update(before)
        for name, names in parents.items():
            vars(sys.modules[name]).update(names)
