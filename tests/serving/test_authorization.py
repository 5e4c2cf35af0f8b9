"""Access: who is admitted, for how long a verdict stands, and what the API server is asked."""

from __future__ import annotations

from itertools import pairwise

import anyio
import httpx
import pytest
import structlog

from hedgerow.serving import authorization
from hedgerow.serving.authorization import ADMITTED, REFUSED, Access, AccessVerdict
from hedgerow_testing.virtual import BACKEND, VirtualClock
from serving.judged import USERS, judging, reviewed
from support.server.apiserver import Act, ApiServer, Exchange, Reply
from support.server.connected import connected

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


@pytest.fixture
def judge() -> ApiServer:
    return judging(latency=0.125)


@pytest.fixture
def gate(judge: ApiServer) -> Access:
    return Access(connected(judge), VirtualClock())


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
        self, gate: Access, judge: ApiServer, header, verdict, asked
    ) -> None:
        assert await gate.judge(header) is verdict
        assert reviewed(judge) == asked

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "good", "Basic good", "Bearer gö",
                                        "Bearer g\x00"])  # fmt: skip
    async def test_what_is_no_token_is_asked_about_nobody(self, gate, judge, header) -> None:
        assert await gate.judge(header) is AccessVerdict.ANONYMOUS
        assert reviewed(judge) == []


class TestMemory:
    @pytest.mark.parametrize(
        ("token", "seconds"), [("good", ADMITTED), ("poor", REFUSED), ("bad", REFUSED)]
    )
    async def test_a_verdict_stands_for_a_while(self, gate, judge, token, seconds) -> None:
        await gate.judge(f"Bearer {token}")
        before = len(judge.exchanges)
        await anyio.sleep(seconds - 1)
        await gate.judge(f"Bearer {token}")
        assert len(judge.exchanges) == before

        await anyio.sleep(2)
        await gate.judge(f"Bearer {token}")
        assert len(judge.exchanges) == 2 * before

    async def test_many_who_come_at_once_with_one_token_are_one_question(self, gate, judge) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(gate.judge, "Bearer good")

        assert reviewed(judge) == ["TokenReview", "SubjectAccessReview"]

    async def test_who_gave_up_asking_keeps_nobody_with_the_same_token_from_it(
        self, gate, judge
    ) -> None:
        verdicts: list[AccessVerdict] = []

        async def ask() -> None:
            await anyio.sleep(0.01)
            verdicts.append(await gate.judge("Bearer good"))

        async with anyio.create_task_group() as tasks:
            with anyio.move_on_after(0.05):
                tasks.start_soon(ask)
                await gate.judge("Bearer good")

        assert verdicts == [AccessVerdict.ADMITTED]

    async def test_what_is_kept_is_bounded_and_the_oldest_goes(
        self, gate, judge, monkeypatch
    ) -> None:
        monkeypatch.setattr(authorization, "REMEMBERED", 2)
        for token in ("a", "b", "c", "c", "b", "a"):
            await gate.judge(f"Bearer {token}")

        assert reviewed(judge) == ["TokenReview"] * 4

    async def test_no_token_is_kept(self, gate: Access) -> None:
        await gate.judge("Bearer good")

        assert "good" not in repr(vars(gate))


async def away(_exchange: Exchange, _act: Act) -> Reply:
    raise httpx.ConnectError("away")


class TestTrouble:
    async def test_without_the_api_server_nothing_is_decided_nor_kept(self, gate, judge) -> None:
        judge.hook = away
        assert await gate.judge("Bearer good") is AccessVerdict.UNDECIDED

        judge.hook = judge.through
        assert await gate.judge("Bearer good") is AccessVerdict.ADMITTED

    async def test_it_is_told_once(self, gate: Access, judge: ApiServer) -> None:
        with structlog.testing.capture_logs() as logs:
            for hook in (away, away, judge.through, away):
                judge.hook = hook
                await gate.judge("Bearer bad")
                await anyio.sleep(REFUSED)

        assert [line["event"] for line in logs] == ["access is not decided"] * 2
        assert "bad" not in str(logs)


class TestFloods:
    """Whoever reaches the port can make up tokens; each is a question to the API server."""

    async def test_made_up_tokens_take_one_request_at_a_time(self, gate, judge) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(gate.judge, f"Bearer {number}")

        sent = [exchange.sent for exchange in judge.exchanges]
        assert len(sent) == 20
        assert all(after - before >= 0.125 for before, after in pairwise(sent))

    async def test_a_token_that_is_remembered_waits_for_none_of_them(self, gate) -> None:
        await gate.judge("Bearer good")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.judge, "Bearer bad")
            await anyio.sleep(0.01)
            began = anyio.current_time()
            assert await gate.judge("Bearer good") is AccessVerdict.ADMITTED

            assert anyio.current_time() == began

    async def test_a_right_that_is_taken_away_ends_with_what_is_remembered(self, gate, monkeypatch):
        await gate.judge("Bearer good")
        monkeypatch.setitem(USERS, "good", "somebody")
        assert await gate.judge("Bearer good") is AccessVerdict.ADMITTED

        await anyio.sleep(ADMITTED)
        assert await gate.judge("Bearer good") is AccessVerdict.FORBIDDEN
