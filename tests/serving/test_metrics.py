"""Metrics: the formats of the exposition, and whom it is given to."""

from __future__ import annotations

import re
from typing import Any, cast

import httpx
import pytest

from hedgerow.runtime.meters import Meters
from hedgerow.serving.authorization import Access, AccessVerdict
from hedgerow.serving.metrics import metrics_app

pytestmark = pytest.mark.anyio


class Gate:
    """Gives one verdict on whoever comes."""

    def __init__(self, verdict: AccessVerdict) -> None:
        self.verdict = verdict
        self.heard: list[str] = []

    async def judge(self, authorization: str) -> AccessVerdict:
        self.heard.append(authorization)
        return self.verdict


async def ask(gate: Gate | None = None, method: str = "GET", **headers: str) -> httpx.Response:
    meters = Meters("1.2.3")
    meters.of_controller("shop")
    app = metrics_app(meters.registry, cast("Access | None", gate))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        plain: dict[str, Any] = {"Accept": "", "Accept-Encoding": "identity"}
        return await client.request(method, "/metrics", headers={**plain, **headers})


class TestFormats:
    async def test_text_is_the_usual_one(self) -> None:
        answer = await ask()

        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'hedgerow_reconcile_total{controller="shop",outcome="success"} 0.0' in answer.text

    async def test_open_metrics_is_given_to_whoever_asks_for_it(self) -> None:
        answer = await ask(Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")

        assert answer.headers["content-type"].startswith("application/openmetrics-text; ver")
        assert answer.text.endswith("# EOF\n")

    @pytest.mark.parametrize("accept", ["application/openmetrics-text; version=abc", "*/*", "; ,"])
    async def test_what_is_asked_for_in_no_known_words_is_text(self, accept: str) -> None:
        answer = await ask(Accept=accept)

        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")

    async def test_it_is_packed_for_whoever_can_unpack_it(self) -> None:
        packed, plain = await ask(**{"Accept-Encoding": "gzip"}), await ask()

        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) < len(plain.content) / 3
        assert _names(packed.text) == _names(plain.text)

    async def test_it_is_read_only(self) -> None:
        assert (await ask(method="HEAD")).status_code == 200
        assert (await ask(method="POST")).status_code == 405


def _names(text: str) -> list[str]:
    return re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)


class TestAccess:
    async def test_whoever_is_admitted_reads_it(self) -> None:
        gate = Gate(AccessVerdict.ADMITTED)
        answer = await ask(gate, Authorization="Bearer x")

        assert "hedgerow_leader 0.0" in answer.text
        assert gate.heard == ["Bearer x"]

    @pytest.mark.parametrize(
        ("verdict", "told"),
        [
            (
                AccessVerdict.ANONYMOUS,
                "no bearer token was sent: send `Authorization: Bearer TOKEN`\n",
            ),
            (AccessVerdict.UNKNOWN, "the API server does not know this bearer token\n"),
        ],
    )
    async def test_whoever_is_not_known_is_told_to_bring_a_token(self, verdict, told) -> None:
        gate = Gate(verdict)
        answer = await ask(gate)

        assert (answer.status_code, answer.text) == (401, told)
        assert answer.headers["www-authenticate"] == 'Bearer realm="hedgerow"'
        assert gate.heard == [""]

    async def test_whoever_lacks_the_right_is_forbidden(self) -> None:
        assert (await ask(Gate(AccessVerdict.FORBIDDEN))).status_code == 403

    async def test_what_is_undecided_is_to_be_asked_again(self) -> None:
        answer = await ask(Gate(AccessVerdict.UNDECIDED))

        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"

    @pytest.mark.parametrize(
        "verdict", [v for v in AccessVerdict if v is not AccessVerdict.ADMITTED]
    )
    async def test_a_refusal_tells_no_metric(self, verdict: AccessVerdict) -> None:
        for method in ("GET", "HEAD"):
            assert "hedgerow_" not in (await ask(Gate(verdict), method)).text
