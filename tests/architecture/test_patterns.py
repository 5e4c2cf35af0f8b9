"""Regular expressions: each one of the product takes linear time, whatever text it meets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from support.code.patterns import Begins, Superlinear, check
from support.code.sources import modules

ANCHORED = frozenset({"match", "fullmatch"})
MAKES_NONE = frozenset({"Match", "Pattern", "escape", *re.RegexFlag.__members__})


class Use(NamedTuple):
    """A place that makes a regular expression; `pattern` is None if it is not a constant."""

    line: int
    pattern: str | bytes | None = None
    flags: int = 0
    begins: Begins = "anywhere"


def uses(tree: ast.Module, names: Mapping[str, Any]) -> Iterator[Use]:
    """Yield each regular expression that a module makes; `names` are the module's constants."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "re":
            yield Use(node.lineno)
        if isinstance(node, ast.Name) and node.id == "re":
            member = parents[node]
            assert isinstance(member, ast.Attribute)
            if member.attr not in MAKES_NONE:
                yield use(member, parents, names)


def use(member: ast.Attribute, parents: Mapping[ast.AST, ast.AST], names: Mapping[str, Any]) -> Use:
    call = parents[member]
    if not (isinstance(call, ast.Call) and call.func is member):
        return Use(member.lineno)
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    try:
        pattern = value(call.args[0], names)
        flags = sum(value(one, names) for one in given if ast.unparse(one).startswith("re."))
    except NameError:
        return Use(call.lineno)
    if member.attr == "compile":
        return Use(call.lineno, pattern, flags, begins(call, parents))
    return Use(call.lineno, pattern, flags, "once" if member.attr in ANCHORED else "anywhere")


def value(expression: ast.expr, names: Mapping[str, Any]) -> Any:
    code = compile(ast.Expression(expression), "<pattern>", "eval")
    return eval(code, dict(names))  # noqa: S307 - our own source


def begins(made: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> Begins:
    """Return where in a text an attempt may begin to match what is compiled."""
    place = parents[made]
    if isinstance(place, ast.Attribute):
        return "once" if place.attr in ANCHORED else "anywhere"
    target = place.targets[0] if isinstance(place, ast.Assign) else getattr(place, "target", None)
    if not (isinstance(target, ast.Name) and target.id.startswith("_")):
        return "anywhere"
    names = (node for node in parents if isinstance(node, ast.Name) and node.id == target.id)
    methods = [parents[name] for name in names if name is not target]
    if not all(isinstance(each, ast.Attribute) and each.attr in ANCHORED for each in methods):
        return "anywhere"
    calls = ((method, parents[method]) for method in methods)
    behind = any(
        isinstance(call, ast.Call) and call.func is method and len(call.args) > 1
        for method, call in calls
    )
    return "behind" if behind else "once"


def test_each_takes_linear_time_whatever_text_it_meets():
    found = 0
    slow: dict[str, str] = {}
    for module in modules():
        if not re.search(r"\bre\b", module.text):
            continue
        for one in uses(module.tree, vars(import_module(module.dotted))):
            found += 1
            reason = why(one)
            if reason:
                slow[f"{module.name}:{one.line}"] = reason

    assert found > 50
    assert slow == {}


def why(one: Use) -> str | None:
    """Return why a regular expression is refused, or None."""
    if one.pattern is None:
        return "its pattern is made of what a function is given"
    try:
        check(one.pattern, one.flags, one.begins)
    except Superlinear as error:
        return f"{one.pattern!r}: {error}"
    return None


class TestLooking:
    @pytest.mark.parametrize(
        ("source", "where"),
        [
            ("_A = re.compile('x')\ndef f(t): return _A.match(t)", "once"),
            ("_A: Final = re.compile('x')\ndef f(t): return _A.fullmatch(t)", "once"),
            ("_A = re.compile('x').fullmatch", "once"),
            ("def f(t): return re.match('x', t)", "once"),
            ("_A = re.compile('x')\ndef f(t): return _A.match(t, 1)", "behind"),
            ("_A = re.compile('x')\ndef f(t): return _A.match(t) or _A.search(t)", "anywhere"),
            ("_A = re.compile('x')\ndef f(t): return g(_A)", "anywhere"),
            ("A = re.compile('x')\ndef f(t): return A.match(t)", "anywhere"),
            ("_A = re.compile('x').sub", "anywhere"),
            ("def f(t): return re.sub('x', '', t)", "anywhere"),
            ("A = {'a': re.compile('x')}", "anywhere"),
        ],
    )
    def test_how_one_is_used_is_seen(self, source, where):
        (found,) = uses(ast.parse(source), {"re": re})

        assert (found.pattern, found.begins) == ("x", where)

    def test_its_flags_and_constants_are_read(self):
        source = "A = re.compile(f'{X}y', re.DOTALL | re.ASCII)\ndef f(t: re.Pattern[str]): ..."

        (found,) = uses(ast.parse(source), {"re": re, "X": "x"})

        assert (found.pattern, found.flags) == ("xy", re.DOTALL | re.ASCII)

    @pytest.mark.parametrize(
        "source",
        ["from re import compile", "def f(p): return re.compile(p)", "f = re.compile"],
    )
    def test_one_whose_pattern_is_unknown_is_refused(self, source):
        (found,) = uses(ast.parse(source), {"re": re})

        assert why(found)


SLOW = {
    "two repeats of the same": "a*a*b",
    "of the same with something between": r"\d*,?\d*$",
    "of what overlaps": r"\w+\s*=?\w*;",
    "a repeat in a repeat": "(a+)+b",
    "an empty one in a repeat": "(a*)*b",
    "a choice of the same": "(a|a)*b",
    "a choice of what overlaps": "(ab|a|b)*c",
    "counted": "a{1,40}a*a*b",
    "lazy": "a*?a*b",
    "in a lookahead": "a*(?=a*b)",
    "behind a possessive one that it cannot fail for": "a*+(ba*a*)c",
    "possessive, of two characters, which is not looked into": "(?:ab)*+(?:a[bc])*d",
    "in another case": "(?i)a*A*b",
    "beyond ASCII": r"\w*é*;",
    "what was found before": r"(a)\1",
}
SLOW_IF_SEARCHED = {
    "a repeat before an end": "a*b",
    "blanks at the end": r"\s+$",
    "possessive": "a++b",
    "from a bracket to its pair": r"\[[^\]]*\]",
    "a word before a mark": r"\b[a-z]+=",
    "in several lines": r"(?m)^\s*a",
    "after a choice": "a|b*c",
    "an end that is found early, and looked beyond": "a(?:[ab]*c)?",
}
FAST = {
    "one repeat": "[a-z]+",
    "two that differ": r"[a-z]*[0-9]*;",
    "a separator between": r"\w*,\w*;",
    "a name": r"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    "a string": r'"(?:[^"\\]|\\.)*"',
    "possessive ones": r"\d*+\.?+\d*+$",
    "a possessive one in a repeat": "(?:[a-z]++,)*;",
}
FAST_IF_REPEATED = {
    "a token": r"\s*[a-z]+\s*(?:,|$)",
    "one or the other": r"a+b|c+d",
}
SLOW_IF_REPEATED = {
    "a token that is found early, and looked beyond": "a(?:[ab]*c)?",
    "of two characters": "ab(?:[ab]*c)?",
}
FAST_IF_SEARCHED = {
    "a repeat at the end": "[0-9]+",
    "a word": r"\w[\w.]*",
    "a string": r'x="(?:[^"\\]|\\.)*"',
    "an end that is there or not": r"\[[^\[\]]*\]?",
    "one that begins at the beginning": r"^a*b",
    "bytes": rb"\x7f|\xc2[\x80-\x9f]",
}


class TestChecking:
    @pytest.mark.parametrize("pattern", SLOW.values(), ids=SLOW)
    def test_what_takes_longer_wherever_it_begins_is_seen(self, pattern):
        with pytest.raises(Superlinear):
            check(pattern, begins="once")
        with pytest.raises(Superlinear):
            check(pattern)

    @pytest.mark.parametrize("pattern", SLOW_IF_SEARCHED.values(), ids=SLOW_IF_SEARCHED)
    def test_what_takes_longer_if_it_may_begin_anywhere_is_seen(self, pattern):
        check(pattern, begins="once")
        with pytest.raises(Superlinear):
            check(pattern)

    @pytest.mark.parametrize("pattern", FAST.values(), ids=FAST)
    def test_what_takes_no_longer_is_let_through(self, pattern):
        check(pattern, begins="once")

    @pytest.mark.parametrize("pattern", FAST_IF_SEARCHED.values(), ids=FAST_IF_SEARCHED)
    def test_what_is_found_or_given_up_at_once_is_let_through(self, pattern):
        check(pattern)

    @pytest.mark.parametrize("pattern", FAST_IF_REPEATED.values(), ids=FAST_IF_REPEATED)
    def test_what_is_repeated_until_it_fails_is_let_through(self, pattern):
        check(pattern, begins="behind")
        with pytest.raises(Superlinear):
            check(pattern)

    @pytest.mark.parametrize("pattern", SLOW_IF_REPEATED.values(), ids=SLOW_IF_REPEATED)
    def test_what_is_repeated_and_looks_beyond_what_it_finds_is_seen(self, pattern):
        check(pattern, begins="once")
        with pytest.raises(Superlinear):
            check(pattern, begins="behind")

    def test_the_word_that_is_repeated_is_named(self):
        with pytest.raises(Superlinear, match=r"^'\d+', again and again$"):
            check(r"[0-9]*[0-9]*;", begins="once")

    def test_too_many_states_are_refused(self):
        with pytest.raises(Superlinear, match="states"):
            check("(?:a{1,100}b{1,100}){1,100}")
