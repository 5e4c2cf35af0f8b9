"""Health: what probes are told."""

from __future__ import annotations

import httpx
import pytest

from hedgerow.serving.health import Health, health_app

pytestmark = pytest.mark.anyio


def sick() -> str:
    return "bluegreen: 1 of 3 caches\nis not filled"


def broken() -> str:
    raise RuntimeError("a secret")


def fine() -> str:
    return ""


async def ask(health: Health, path: str, method: str = "GET") -> httpx.Response:
    transport = httpx.ASGITransport(app=health_app(health))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return await client.request(method, path)


def health(*, ready: bool = True) -> Health:
    made = Health()
    made.live.add("loop", fine, lambda: "2 ms late")
    made.ready.add("caches", fine if ready else sick)
    made.ready.add("webhooks", fine)
    return made


class TestAnswers:
    async def test_all_is_well_in_two_letters(self) -> None:
        for path in ("/healthz", "/livez", "/readyz", "/readyz/caches", "/healthz/loop"):
            answer = await ask(health(), path)

            assert (answer.status_code, answer.text) == (200, "ok"), path

    async def test_verbose_tells_of_each_check_as_kubernetes_does(self) -> None:
        answer = await ask(health(), "/readyz?verbose")

        assert answer.text == "[+]caches ok\n[+]webhooks ok\nreadyz check passed\n"

    async def test_verbose_tells_what_a_check_has_to_note(self) -> None:
        answer = await ask(health(), "/healthz?verbose")

        assert answer.text == "[+]loop ok: 2 ms late\nhealthz check passed\n"

    async def test_a_failure_comes_with_its_reason_unasked(self) -> None:
        answer = await ask(health(ready=False), "/readyz")

        assert answer.status_code == 503
        assert answer.text == (
            "[-]caches failed: bluegreen: 1 of 3 caches is not filled\n"
            "[+]webhooks ok\n"
            "readyz check failed\n"
        )

    async def test_one_check_is_asked_by_its_name(self) -> None:
        failed = await ask(health(ready=False), "/readyz/caches")
        passed = await ask(health(ready=False), "/readyz/webhooks")
        unknown = await ask(health(ready=False), "/readyz/loop")

        assert (failed.status_code, failed.text) == (503, sick().replace("\n", " "))
        assert (passed.status_code, passed.text) == (200, "ok")
        assert unknown.status_code == 404

    async def test_a_check_can_be_left_out(self) -> None:
        answer = await ask(health(ready=False), "/readyz?exclude=caches")

        assert (answer.status_code, answer.text) == (200, "ok")

    async def test_liveness_and_readiness_are_two_things(self) -> None:
        assert (await ask(health(ready=False), "/healthz")).status_code == 200

    async def test_without_checks_answering_is_enough(self) -> None:
        assert (await ask(Health(), "/readyz")).text == "ok"

    async def test_a_check_that_fails_itself_fails_without_saying_what_it_saw(self) -> None:
        made = Health()
        made.live.add("loop", broken)
        answer = await ask(made, "/healthz")

        assert answer.status_code == 503
        assert "[-]loop failed: the check itself failed: RuntimeError\n" in answer.text
        assert "secret" not in answer.text

    async def test_head_is_answered_like_get(self) -> None:
        assert (await ask(health(), "/readyz", "HEAD")).status_code == 200
        assert (await ask(health(ready=False), "/readyz", "HEAD")).status_code == 503

    async def test_nothing_is_written(self) -> None:
        assert (await ask(health(), "/readyz", "POST")).status_code == 405

    async def test_no_answer_is_kept(self) -> None:
        assert (await ask(health(), "/readyz")).headers["cache-control"] == "no-store"
