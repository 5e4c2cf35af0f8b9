"""Sample: which mutants are made; the same ones each time, whatever changes elsewhere."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider

SEED = "hedgerow"
AREAS = {
    "operator/hedgerow/fields": 40,
    "operator/hedgerow/plan": 45,
    "operator/hedgerow/controllers": 28,
    "operator/hedgerow/schedule": 7,
    "operator/hedgerow/runtime": 45,
    "schemas/hedgerow_schemas": 15,
}
"""How many mutants each gets."""
_NEEDLESS = {"VariableReplacer", "VariableInserter"}
"""These want to be told a variable each time."""
_ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
_IDENTITY = {"Is", "IsNot"}


def _is_telling(name: str) -> bool:
    """Return of an operator whether what it makes can go unseen, and is not for ever the same.

    A bit operator for a plus is an error at once; `is` for `==` changes nothing most of the time.
    """
    kind, _, change = name.partition("_")
    before, _, after = change.partition("_")
    if kind == "ReplaceBinaryOperator":
        return (before in _ARITHMETIC) == (after in _ARITHMETIC) and "Shift" not in after
    if kind == "ReplaceComparisonOperator":
        return (before in _IDENTITY) == (after in _IDENTITY)
    return name not in _NEEDLESS


_OPERATORS = {name: OperatorProvider()[name]() for name in OperatorProvider() if _is_telling(name)}


@dataclass(frozen=True)
class Mutant:
    """One change of one place; lines are counted from one.

    `tests` have to find it; without any, those that run its line.
    """

    key: str
    path: str
    first: int
    last: int
    was: str
    source: str
    tests: tuple[str, ...] = ()

    @property
    def now(self) -> str:
        """The lines as they are changed."""
        return " ".join(self.source.splitlines()[self.first - 1 : self.last]).strip()

    @property
    def module(self) -> str:
        parts = Path(self.path).with_suffix("").parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass(frozen=True)
class _Site:
    operator: str
    occurrence: int
    first: int
    last: int
    place: tuple[int, int]
    key: str

    @property
    def rank(self) -> str:
        return sha256(f"{SEED} {self.key}".encode()).hexdigest()


class _Finder(Visitor):
    """Finds the places that an operator can change, in the order in which it counts them."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._lines = path, text.splitlines()
        self._count: Counter[str] = Counter()
        self._same: Counter[str] = Counter()
        self.sites: list[_Site] = []

    def visit(self, node):
        for name, operator in _OPERATORS.items():
            for start, end in operator.mutation_positions(node):
                # No line number: what is added above changes nothing.
                key = f"{self._path}: {name}: {self._lines[start[0] - 1].strip()}"
                self._same[key] += 1
                named = f"{key} #{self._same[key]}"
                self.sites.append(_Site(name, self._count[name], start[0], end[0], start, named))
                self._count[name] += 1
        return node


def sample(root: Path) -> Iterator[Mutant]:
    """Yield the mutants of a tree: of each area as many as it is due, no two of one place."""
    for area, count in AREAS.items():
        chosen = _chosen(root, area)
        yield from (mutant for mutant, _ in zip(chosen, range(count), strict=False))


def _chosen(root: Path, area: str) -> Iterator[Mutant]:
    sites = []
    for path in sorted((root / area).rglob("*.py")):
        name, text = str(path.relative_to(root)), path.read_text("utf-8")
        finder = _Finder(name, text)
        finder.walk(get_ast(text))
        places = defaultdict(list)
        for site in finder.sites:
            places[site.place].append(site)
        # An operator has many replacements: of each place one, or comparisons were all there is.
        sites += [(name, text, min(of, key=lambda site: site.rank)) for of in places.values()]
    for name, text, site in sorted(sites, key=lambda found: found[2].rank):
        source = mutate_code(text, _OPERATORS[site.operator], site.occurrence)
        if source is not None and _differs(text, source):
            first, last = _statement(text, site.first, site.last)
            was = " ".join(text.splitlines()[first - 1 : last]).strip()
            yield Mutant(site.key, name, first, last, was, source)


def _differs(before: str, after: str) -> bool:
    """Return of a change whether it can make a difference; of an annotation it makes none."""
    try:
        return _meaning(before) != _meaning(after)
    except SyntaxError:
        return False


def _meaning(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            # A cache makes it no other function.
            node.decorator_list = [d for d in node.decorator_list if "cache" not in ast.unparse(d)]
        elif isinstance(node, ast.ClassDef):
            # Nobody changes what is frozen, or adds to what has slots, be it or not.
            node.decorator_list = [
                d for d in node.decorator_list if "dataclass" not in ast.unparse(d)
            ]
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.unparse(tree)


def _statement(text: str, first: int, last: int) -> tuple[int, int]:
    """Return the lines of the smallest statement around some, of one with a body its head."""
    best = first, last
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else node.end_lineno
        if node.lineno <= first <= max(end, node.lineno):
            best = node.lineno, max(end, node.lineno)
    return best
