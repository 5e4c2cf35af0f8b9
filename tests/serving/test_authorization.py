"""Access: who is admitted, for how long a verdict stands, and what the API server is asked."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
import structlog

from hedgerow.kube import errors
from hedgerow.serving import authorization
from hedgerow.serving.authorization import ADMITTED, REFUSED, Access, AccessVerdict
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

        assert judge.asked == ["TokenReview"] * 4

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
            for number in range(20):
                tasks.start_soon(gate.judge, f"Bearer {number}")

        assert (len(judge.asked), judge.most) == (20, 1)

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
