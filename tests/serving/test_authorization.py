"""Access: who is admitted, for how long a verdict stands, and what the API server is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import pytest
import structlog

from hedgerow.kube import errors
from hedgerow.serving import authorization
from hedgerow.serving.authorization import (
    ADMITTED,
    MOST_REFUSALS,
    REFUSED,
    STRANGERS,
    Access,
    AccessVerdict,
)
from hedgerow.testing.virtual import BACKEND, VirtualClock

pytestmark = pytest.mark.anyio

USERS = {"good": "prometheus", "poor": "somebody"}


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


class Judge:
    """An API server that knows two tokens, one of which has the right."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.trouble: errors.KubeError | None = None
        self.busy = self.most = 0

    async def review(self, kind: str, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.asked.append(kind)
        self.busy += 1
        self.most = max(self.most, self.busy)
        await anyio.sleep(0.1)
        self.busy -= 1
        if self.trouble:
            raise self.trouble
        if kind == "TokenReview":
            user = USERS.get(spec["token"])
            return {"authenticated": user is not None, "user": {"username": user or ""}}
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        return {"allowed": spec["user"] == "prometheus"}


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def gate(judge: Judge) -> Access:
    return Access(cast("Any", judge), VirtualClock())


class TestVerdicts:
    @pytest.mark.parametrize(
        ("header", "verdict", "asked"),
        [
            ("Bearer good", AccessVerdict.ADMITTED, ["TokenReview", "SubjectAccessReview"]),
            ("bEARER  good ", AccessVerdict.ADMITTED, ["TokenReview", "SubjectAccessReview"]),
            ("Bearer poor", AccessVerdict.FORBIDDEN, ["TokenReview", "SubjectAccessReview"]),
            ("Bearer bad", AccessVerdict.UNKNOWN, ["TokenReview"]),
        ],
    )
    async def test_a_user_with_the_right_is_admitted_and_nobody_else(
        self, gate: Access, judge: Judge, header, verdict, asked
    ) -> None:
        assert await gate.judge(header) is verdict
        assert judge.asked == asked

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "good", "Basic good", "Bearer gö",
                                        "Bearer g\x00"])  # fmt: skip
    async def test_what_is_no_token_is_asked_about_nobody(self, gate, judge, header) -> None:
        assert await gate.judge(header) is AccessVerdict.ANONYMOUS
        assert judge.asked == []


class TestMemory:
    @pytest.mark.parametrize(
        ("token", "seconds"), [("good", ADMITTED), ("poor", REFUSED), ("bad", REFUSED)]
    )
    async def test_a_verdict_stands_for_a_while(self, gate, judge, token, seconds) -> None:
        await gate.judge(f"Bearer {token}")
        before = len(judge.asked)
        await anyio.sleep(seconds - 1)
        await gate.judge(f"Bearer {token}")
        assert len(judge.asked) == before

        await anyio.sleep(2)
        await gate.judge(f"Bearer {token}")
        assert len(judge.asked) == 2 * before

    async def test_many_who_come_at_once_with_one_token_are_one_question(self, gate, judge) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(gate.judge, "Bearer good")

        assert judge.asked == ["TokenReview", "SubjectAccessReview"]

    async def test_who_gave_up_asking_keeps_nobody_with_the_same_token_from_it(
        self, gate, judge
    ) -> None:
        verdicts: list[AccessVerdict] = []

        async def ask() -> None:
            verdicts.append(await gate.judge("Bearer good", "10.0.0.1"))

        async with anyio.create_task_group() as tasks:
            with anyio.move_on_after(0.05):
                tasks.start_soon(_after, 0.01, ask)
                await gate.judge("Bearer good", "10.0.0.1")

        assert verdicts == [AccessVerdict.ADMITTED]

    async def test_what_is_kept_is_bounded_and_the_oldest_goes(
        self, gate, judge, monkeypatch
    ) -> None:
        monkeypatch.setattr(authorization, "REMEMBERED", 2)
        for number, token in enumerate(("good", "a", "b", "c", "good", "c", "a")):
            await gate.judge(f"Bearer {token}", f"10.0.0.{number}")

        kept = (gate._admitted, gate._refused, gate._neighbours, gate._refusals)
        assert max(map(len, kept)) == 2
        assert judge.asked.count("TokenReview") == 5

    async def test_no_token_is_kept(self, gate: Access) -> None:
        await gate.judge("Bearer good")

        assert "good" not in repr(vars(gate))


class TestTrouble:
    async def test_without_the_api_server_nothing_is_decided_nor_kept(self, gate, judge) -> None:
        judge.trouble = errors.Unreachable("away", sent=False)
        assert await gate.judge("Bearer good") is AccessVerdict.UNDECIDED

        judge.trouble = None
        assert await gate.judge("Bearer good") is AccessVerdict.ADMITTED

    async def test_it_is_told_once(self, gate: Access, judge: Judge) -> None:
        with structlog.testing.capture_logs() as logs:
            for trouble in ("away", "away", None, "away"):
                judge.trouble = errors.Unreachable(trouble, sent=False) if trouble else None
                await gate.judge("Bearer bad")
                await anyio.sleep(REFUSED)

        assert [line["event"] for line in logs] == ["access is not decided"] * 2
        assert "bad" not in str(logs)


class TestFloods:
    """Whoever reaches the port can make up tokens; each is a question to the API server."""

    async def test_made_up_tokens_take_one_request_at_a_time(self, gate, judge) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(STRANGERS):
                tasks.start_soon(gate.judge, f"Bearer {number}", f"10.0.0.{number}")

        assert (len(judge.asked), judge.most) == (STRANGERS, 1)

    async def test_one_address_has_one_question_at_a_time(self, gate, judge) -> None:
        verdicts = await _together(gate, [(f"Bearer {n}", "10.0.0.1") for n in range(260)])

        assert verdicts.count(AccessVerdict.BUSY) == 259
        assert len(judge.asked) == 1

    async def test_an_address_with_refusals_only_is_not_asked_about_for_a_while(self, gate, judge):
        for number in range(MOST_REFUSALS + 3):
            last = await gate.judge(f"Bearer {number}", "10.0.0.1")
        assert (last, len(judge.asked)) == (AccessVerdict.BUSY, MOST_REFUSALS)

        await anyio.sleep(REFUSED)
        assert await gate.judge("Bearer good", "10.0.0.1") is AccessVerdict.ADMITTED

    async def test_a_token_that_was_admitted_waits_for_no_stranger(self, gate, judge) -> None:
        await gate.judge("Bearer good", "10.0.0.1")
        await anyio.sleep(ADMITTED)
        judge.asked.clear()

        flood = [(f"Bearer {n}", f"10.0.1.{n}") for n in range(260)]
        verdicts = await _together(gate, [*flood, ("Bearer good", "10.0.0.1")])

        # It was asked about as soon as the first of them.
        assert verdicts[-1] is AccessVerdict.ADMITTED
        assert "SubjectAccessReview" in judge.asked[:4]

    async def test_a_new_token_of_an_address_that_is_known_waits_for_no_stranger(
        self, gate, judge, monkeypatch
    ) -> None:
        """A pod's token is replaced every hour."""
        await gate.judge("Bearer good", "10.0.0.1")
        monkeypatch.setitem(USERS, "renewed", "prometheus")

        flood = [(f"Bearer {n}", f"10.0.1.{n}") for n in range(260)]
        verdicts = await _together(gate, [*flood, ("Bearer renewed", "10.0.0.1")])

        assert verdicts[-1] is AccessVerdict.ADMITTED
        assert verdicts.count(AccessVerdict.BUSY) == 260 - STRANGERS

    async def test_a_flood_makes_no_admitted_token_forgotten(self, gate, judge, monkeypatch):
        monkeypatch.setattr(authorization, "REMEMBERED", 4)
        await gate.judge("Bearer good", "10.0.0.1")
        for number in range(20):
            await gate.judge(f"Bearer {number}", f"10.0.1.{number}")
        judge.asked.clear()

        assert await gate.judge("Bearer good", "10.0.0.1") is AccessVerdict.ADMITTED
        assert judge.asked == []

    async def test_a_token_whose_right_is_taken_away_is_a_stranger_again(self, gate, monkeypatch):
        await gate.judge("Bearer good", "10.0.0.1")
        monkeypatch.setitem(USERS, "good", "somebody")
        await anyio.sleep(ADMITTED)

        assert await gate.judge("Bearer good", "10.0.0.1") is AccessVerdict.FORBIDDEN
        assert gate._admitted == {}


async def _after(seconds: float, ask: Callable[[], Awaitable[None]]) -> None:
    await anyio.sleep(seconds)
    await ask()


async def _together(gate: Access, asked: list[tuple[str, str]]) -> list[AccessVerdict]:
    """Return the verdicts on those who come at the same time, in their order."""
    verdicts: dict[int, AccessVerdict] = {}

    async def ask(number: int) -> None:
        verdicts[number] = await gate.judge(*asked[number])

    async with anyio.create_task_group() as tasks:
        for number in range(len(asked)):
            tasks.start_soon(ask, number)
    return [verdicts[number] for number in range(len(asked))]
