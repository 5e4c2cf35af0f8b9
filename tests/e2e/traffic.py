"""Traffic: callers who ask all the time, and what each of their answers was worth."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple, Self

from e2e.background import Background
from e2e.callers import ask
from hedgerow_testing.api import Api
from hedgerow_testing.waiting import eventually

COLOURS = ("Blue", "Green")
CALLERS = 4
ENOUGH = 40
"""Answers of one colour in a row: by chance one of 2**40 of two colours that share the traffic."""
_SOON = 120.0
_EVERY = 0.02
"""Seconds between two requests of a caller: some 150 a second of all, whom the machine bears."""


class Answer(NamedTuple):
    """When a request was made, when it was answered, and what was said or went wrong."""

    asked: float
    answered: float
    said: str


class Traffic:
    """Several callers, each of whom makes a request over a new connection after the other."""

    def __init__(
        self, once: Callable[[], str], callers: int = CALLERS, every: float = _EVERY
    ) -> None:
        self.answers: list[Answer] = []
        self._once = once
        self._callers = [Background(self._ask, every) for _ in range(callers)]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for caller in self._callers:
            self._stack.enter_context(caller)
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def settled(self, said: str) -> float:
        """Wait until this alone is answered, and give the moment from which that is so."""

        def first() -> Answer | None:
            latest = self.answers[-ENOUGH:]
            return latest[0] if [answer.said for answer in latest] == [said] * ENOUGH else None

        return eventually(first, _SOON, f"nothing but {said}").answered

    def goes_on(self, answers: int = ENOUGH) -> None:
        """Wait for so many more answers."""
        enough = len(self.answers) + answers
        eventually(lambda: len(self.answers) >= enough, _SOON, "more answers")

    def _ask(self, _: int) -> None:
        asked = time.monotonic()
        said = self._once()
        self.answers.append(Answer(asked, time.monotonic(), said))


class Balancer(Background):
    """Stands for a load balancer that talks to pods, as those of clouds do.

    It takes an endpoint away as soon as the EndpointSlices do, and asks a new one only after its
    own check of it, which takes `slow` seconds.
    """

    def __init__(self, api: Api, namespace: str, service: str, port: int, slow: float) -> None:
        self._slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._of = {"labelSelector": f"kubernetes.io/service-name={service}"}
        self._api, self._port, self._slow = api, port, slow
        self._since: dict[str, float] = {}
        self._turn = itertools.count()
        super().__init__(self._look, _EVERY)

    def ask(self) -> str:
        """Ask the next endpoint in turn."""
        since, now = self._since, time.monotonic()
        checked = [address for address, begun in since.items() if now - begun >= self._slow]
        if not checked:
            return "no endpoint"
        return ask(checked[next(self._turn) % len(checked)], self._port)

    def _look(self, _: int) -> None:
        slices = self._api.raw("GET", self._slices, params=self._of).must()["items"]
        ready = [
            address
            for one in slices
            for endpoint in one["endpoints"] or ()
            if endpoint["conditions"]["ready"]
            for address in endpoint["addresses"]
        ]
        now = time.monotonic()
        self._since = {address: self._since.get(address, now) for address in ready}


class Flip(NamedTuple):
    """A change of `routeTo`: when it began, and from when only the new colour may answer."""

    to: str
    began: float
    settled: float


@dataclass(frozen=True)
class Tally:
    """What became of the requests from one flip until the next.

    `seconds` is how long it took until only the new colour answered. `mixed` are those that got the
    old colour although the new one had answered before; misrouted did so after the switch.
    """

    seconds: float

    answered: Counter[str]
    failed: Counter[str]
    mixed: int
    misrouted: int


def judge(answers: Sequence[Answer], flips: Sequence[Flip]) -> list[Tally]:
    """Return a tally for each flip.

    A request that was under way while a switch was going on may get either colour. One that was
    made after it and answered before the next has to get the new one.
    """
    begins = [float("-inf"), *(flip.began for flip in flips[1:]), float("inf")]
    return [_tally(answers, flip, *begins[n : n + 2]) for n, flip in enumerate(flips)]


def _tally(answers: Sequence[Answer], flip: Flip, begin: float, end: float) -> Tally:
    mine = [answer for answer in answers if begin <= answer.asked < end]
    said = Counter(answer.said for answer in mine)
    new = min((one.answered for one in mine if one.said == flip.to), default=end)
    (other,) = set(COLOURS) - {flip.to}
    old = [one.asked for one in mine if one.said == other and one.answered < end]
    return Tally(
        seconds=flip.settled - flip.began,
        answered=Counter({colour: said[colour] for colour in COLOURS}),
        failed=Counter({what: said[what] for what in said if what not in COLOURS}),
        mixed=sum(asked >= new for asked in old),
        misrouted=sum(asked >= flip.settled for asked in old),
    )
