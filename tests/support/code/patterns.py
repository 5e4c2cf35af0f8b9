"""Patterns: whether a regular expression may take more than linear time, for whatever text.

`re` tries one way through a pattern after the other. Their number grows with the text if and only
if some word leads from one repeat back to itself, from there to another one, and from that one back
to itself: `a*a*` over `aaa…` (the criterion IDA of A. Weber and H. Seidl, On the degree of
ambiguity of finite automata, 1991). The pattern is read by the parser of `re` itself. Nothing is
run or timed: what passes is linear for every text.

A pattern that is searched for may begin anywhere, so it has a repeat of any character in front.
What follows a possessive repeat cannot begin with a character that the repeat would have taken.
Assertions of no width count as met, so a few patterns that are linear are refused nevertheless.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import Any, Literal, NamedTuple

_compiler: Any = re._compiler  # type: ignore[attr-defined]
_op: Any = re._parser  # type: ignore[attr-defined]

Chars = frozenset[int]
Begins = Literal["once", "anywhere", "behind"]
"""Where a pattern may begin: where the text does, anywhere, or behind what it found before."""
Moves = dict[int, dict[int, set[int]]]
"""For each state and character the states that come next."""
_START = 0
_MOST = 2000
"""States of an automaton; only counted repeats make many."""
_SAMPLES = 'a5_ \n.-"é٣\u2003\0\U0001f600'
"""Characters that classes such as `\\w` tell apart."""
_NONE: Chars = frozenset()
_IF: Chars = frozenset({-1})
"""No character: it marks what an assertion may prevent."""
_END: Chars = frozenset({-1, -2})
"""The same of the assertion that the text ends."""


class Superlinear(Exception):
    """A word is named whose repetition takes more than linear time."""


class _Part(NamedTuple):
    """Of a part of a pattern the states that come first and last, and the ways to leave it out.

    With each goes what the next character cannot be.
    """

    first: list[tuple[int, Chars]]
    last: list[tuple[int, Chars]]
    empty: list[Chars]


_EMPTY = _Part([], [], [_NONE])


def check(pattern: str | bytes, flags: int = 0, begins: Begins = "anywhere") -> None:
    """Raise Superlinear if there is a text for which a pattern takes more than linear time."""
    tree = _op.parse(pattern, flags)
    automaton = _Automaton(tree, isinstance(pattern, bytes))
    moves = automaton.moves()
    for one, other in automaton.doubled():
        if one in _reached(moves, other):
            raise Superlinear("a repeat that repeats nothing but a repeat")
    loops = [state for state in moves if state in _reached(moves, state)]
    attempts = automaton.restarted(moves, "once" if _is_anchored(tree) else begins)
    for other in loops if _START in _reached(attempts, _START) else ():
        _refuse(_pumped(attempts, moves, _START, other, automaton.found))
    for one, other in product(loops, repeat=2):
        if one != other and other in _reached(moves, one):
            _refuse(_pumped(moves, moves, one, other, _NONE))


def _refuse(word: list[int] | None) -> None:
    if word:
        raise Superlinear(f"{''.join(map(chr, word))!r}, again and again")


def _is_anchored(tree: Any) -> bool:
    anchors = (_op.AT_BEGINNING, _op.AT_BEGINNING_STRING)
    begins = tree and tree[0][0] is _op.AT and tree[0][1] in anchors
    return bool(begins) and not tree.state.flags & re.MULTILINE


class _Automaton:
    """A state for each character of a pattern, and one before them all."""

    def __init__(self, tree: Any, octets: bool) -> None:
        self._tree, self._octets = tree, octets
        self._alphabet = sorted(set(_characters(tree, 0xFF if octets else 0x10FFFF)))
        self._accepts: list[Chars] = [_NONE]
        self._ways: Counter[tuple[int, int, Chars]] = Counter()
        self._known: dict[str, Chars] = {}
        whole = self._sequence(tree, tree.state.flags)
        self._join([(_START, _NONE)], whole.first)
        self._ends = frozenset(state for state, after in whole.last if not after >= _END)
        self.found = frozenset(state for state, after in whole.last if not after & _IF)
        # One of all characters that mean the same in each place is enough.
        places = {*self._accepts, *(never for *_, never in self._ways)}
        kinds = {tuple(c in place for place in places): c for c in self._alphabet}
        self._alphabet = sorted(kinds.values())

    def doubled(self) -> Iterator[tuple[int, int]]:
        """Yield states from one of which two ways lead to the other for the same character."""
        known: dict[tuple[int, int], Chars] = {}
        for (one, other, never), count in self._ways.items():
            chars, before = self._accepts[other] - never, known.get((one, other), _NONE)
            if count > 1 or chars & before:
                yield one, other
            known[one, other] = chars | before

    def moves(self) -> Moves:
        found: Moves = {state: defaultdict(set) for state in range(len(self._accepts))}
        for one, other, never in self._ways:
            for char in self._accepts[other].intersection(self._alphabet) - never:
                found[one][char].add(other)
        return found

    def restarted(self, moves: Moves, begins: Begins) -> Moves:
        """Return the moves with those by which a later attempt begins."""
        found = {
            state: {c: set(nexts) for c, nexts in known.items()} for state, known in moves.items()
        }
        for state, known in found.items():
            for char in self._alphabet:
                if begins == "behind" and not self._ends.isdisjoint(known.get(char, ())):
                    known[char].add(_START)
                elif begins == "anywhere" and state == _START:
                    known.setdefault(char, set()).add(_START)
        return found

    def _sequence(self, items: Iterable[Any], flags: int) -> _Part:
        whole = _EMPTY
        for operation, argument in items:
            whole = self._then(whole, self._part(operation, argument, flags))
        return whole

    def _then(self, one: _Part, other: _Part) -> _Part:
        self._join(one.last, other.first)
        return _Part(
            one.first + [(s, never | e) for e in one.empty for s, never in other.first],
            other.last + [(s, never | e) for s, never in one.last for e in other.empty],
            [before | after for before in one.empty for after in other.empty],
        )

    def _join(self, last: Iterable[tuple[int, Chars]], first: list[tuple[int, Chars]]) -> None:
        for one, after in last:
            for other, before in first:
                self._ways[one, other, after | before] += 1

    def _part(self, operation: Any, argument: Any, flags: int) -> _Part:
        match operation:
            case _op.ATOMIC_GROUP:
                part = self._sequence(argument, flags)
            case _op.BRANCH:
                parts = [self._sequence(items, flags) for items in argument[1]]
                lists = zip(*parts, strict=True)
                part = _Part(*(list(chain.from_iterable(some)) for some in lists))
            case _op.SUBPATTERN:
                _, add, drop, items = argument
                part = self._sequence(items, (flags | add) & ~drop)
            case _op.MAX_REPEAT | _op.MIN_REPEAT | _op.POSSESSIVE_REPEAT:
                part = self._repeat(*argument, flags, operation is _op.POSSESSIVE_REPEAT)
            case _op.ASSERT | _op.ASSERT_NOT:
                ahead = argument[0] == 1
                part = _Part(self._sequence(argument[1], flags).first if ahead else [], [], [_IF])
            case _op.AT:
                ends = argument is _op.AT_END_STRING or argument is _op.AT_END
                part = _Part([], [], [_END if ends and not flags & re.MULTILINE else _IF])
            case _op.GROUPREF | _op.GROUPREF_EXISTS:
                raise Superlinear("what a group found, again")
            case _:
                part = self._character(operation, argument, flags)
        return part

    def _repeat(self, least: int, most: Any, items: Any, flags: int, possessive: bool) -> _Part:
        copies = [self._sequence(items, flags) for _ in range(least)]
        rest = _EMPTY
        if most is _op.MAXREPEAT:
            rest = self._loop(self._sequence(items, flags), possessive)
        for _ in range(0 if most is _op.MAXREPEAT else most - least):
            one = self._then(self._sequence(items, flags), rest)
            rest = one._replace(empty=[*one.empty, self._taken(one) if possessive else _NONE])
        for copy in reversed(copies):
            rest = self._then(copy, rest)
        return rest

    def _loop(self, body: _Part, possessive: bool) -> _Part:
        if body.empty:
            raise Superlinear("a repeat of what may be empty")
        self._join(body.last, body.first)
        never = self._taken(body) if possessive else _NONE
        return _Part(body.first, [(s, after | never) for s, after in body.last], [never])

    def _taken(self, body: _Part) -> Chars:
        """Return the characters with which an iteration begins that cannot fail then."""
        ends = {state for state, after in body.last if not after & _IF}
        return _NONE.union(*(self._accepts[s] - never for s, never in body.first if s in ends))

    def _character(self, operation: Any, argument: Any, flags: int) -> _Part:
        key = repr((operation, argument, flags))
        if key not in self._known:
            single = _op.SubPattern(self._tree.state, [(operation, argument)])
            accepts = _compiler.compile(single, flags).fullmatch
            text = (lambda c: bytes([c])) if self._octets else chr
            self._known[key] = frozenset(c for c in self._alphabet if accepts(text(c)))
        self._accepts.append(self._known[key])
        if len(self._accepts) > _MOST:
            raise Superlinear(f"more than {_MOST} states")
        state = len(self._accepts) - 1
        return _Part([(state, _NONE)], [(state, _NONE)], [])


def _characters(item: Any, most: int) -> Iterator[int]:
    """Yield the characters that a pattern names, their neighbours, and samples of all others."""
    yield from (ord(c) for c in _SAMPLES if ord(c) <= most)
    todo = [item]
    while todo:
        found = todo.pop()
        if isinstance(found, int) and not isinstance(found, bool):
            near = {found - 1, found, found + 1, ord(chr(found % most).swapcase()[0])}
            yield from (code for code in near if 0 <= code <= most)
        elif isinstance(found, list | tuple | _op.SubPattern):
            todo.extend(found)


def _reached(moves: Moves, state: int) -> set[int]:
    seen, todo = set[int](), [state]
    while todo:
        for nexts in moves[todo.pop()].values():
            todo.extend(nexts - seen)
            seen |= nexts
    return seen


def _pumped(first: Moves, moves: Moves, one: int, other: int, ends: Chars) -> list[int] | None:
    """Return a word that leads from one to itself, from one to other, and from other to itself.

    The last way leads through no state in which the pattern has been found.
    """
    begin, goal = (one, one, other), (one, other, other)
    came: dict[tuple[int, int, int], Any] = {begin: None}
    todo = deque([begin])
    while todo and goal not in came:
        place = todo.popleft()
        a, b, c = first[place[0]], first[place[1]], moves[place[2]]
        for char in a.keys() & b.keys() & c.keys():
            for reached in product(a[char], b[char], c[char] - ends):
                if reached not in came:
                    came[reached] = (place, char)
                    todo.append(reached)
    word: list[int] = []
    place = goal
    while came.get(place):
        place, char = came[place]
        word.insert(0, char)
    return word or None
