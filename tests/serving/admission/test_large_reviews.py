"""Judging: what is too large for the process that serves, in a process with limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, cast

import anyio
import pytest
import structlog
import yaml

from hedgerow.contract import Controller
from hedgerow.controllers import bluegreen
from hedgerow.controllers.cronjob import controller
from hedgerow.serving.admission import large_reviews
from hedgerow.serving.admission import review as admission
from hedgerow.serving.admission.answering import MEMORY, answered
from hedgerow.serving.admission.handlers import LARGE
from hedgerow.serving.admission.large_reviews import Judge
from support.sources import ROOT

pytestmark = pytest.mark.anyio

Object = dict[str, Any]
BLUEGREEN, CRONJOB = (
    cast("Controller[Any]", module.CONTROLLER) for module in (bluegreen, controller)
)
PODS = {"containers": [{"name": "c"}]}
EMPTY: Object = {}
WIDE = {
    "metadata.ownerReferences": lambda n: ({"ownerReferences": [EMPTY] * (n // 3)}, {}),
    "metadata.finalizers": lambda n: ({"finalizers": [1] * (n // 2)}, {}),
    "metadata.managedFields": lambda n: ({"managedFields": [1] * (n // 2)}, {}),
    "metadata.labels": lambda n: ({"labels": {f"{i:x}": 1 for i in range(n // 11)}}, {}),
    "metadata.annotations": lambda n: ({"annotations": {f"{i:x}": 1 for i in range(n // 11)}}, {}),
    "spec.ports": lambda n: ({}, {"ports": [EMPTY] * (n // 3)}),
    "spec.ports of numbers": lambda n: ({}, {"ports": [1] * (n // 2)}),
    "spec.blueSpec": lambda n: ({}, {"blueSpec": [EMPTY] * (n // 3)}),
    "spec.blueSpec.containers": lambda n: ({}, {"blueSpec": {"containers": [EMPTY] * (n // 3)}}),
}
"""By the field that a list or a map is in, what makes a review of about so many bytes of it."""
WIDEST = ("metadata.ownerReferences", "metadata.labels", "spec.ports")
MOST_ERRORS = 200


def review(meta: Object | None = None, spec: Object | None = None, **more: Any) -> bytes:
    api = BLUEGREEN.resource.api
    request = {
        "uid": "705ab4f5",
        "kind": {"group": api.group, "version": api.version, "kind": api.kind},
        "resource": {"group": api.group, "version": api.version, "resource": api.plural},
        "operation": "CREATE",
        "object": {
            "metadata": {"name": "x", **(meta or {})},
            "spec": {"routeTo": "Blue", "blueSpec": PODS, **(spec or {})},
        },
        **more,
    }
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(body, separators=(",", ":")).encode()


class TestWork:
    @pytest.mark.parametrize("field", WIDE)
    def test_a_wide_list_is_no_error_for_each_of_its_items(self, field):
        """A model that is shown the list makes one for each, and keeps all else waiting for it."""
        body = json.loads(review(*WIDE[field](LARGE)))["request"]["object"]

        found = list(admission._errors(body, BLUEGREEN))

        assert len(found) <= MOST_ERRORS
        assert sum(len(str(error)) for error in found) < LARGE

    def test_a_list_that_is_too_long_is_told_with_its_bound(self):
        code, answer = answered(review({}, {"ports": [EMPTY] * 33}), BLUEGREEN, "validate")

        assert code == 200
        assert answer["response"]["status"]["details"]["causes"] == [
            {
                "reason": "FieldValueTooMany",
                "message": "Too many: 33: must have at most 32 items",
                "field": "spec.ports",
            }
        ]


class TestLimits:
    def test_no_body_takes_the_memory_and_the_time_of_the_process_that_serves(self):
        """Nor together with the process that judges it more than the container may have."""
        done = subprocess.run(
            [sys.executable, "-c", _DRIVER],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
            capture_output=True,
            text=True,
            check=True,
        )
        measured = json.loads(done.stdout.splitlines()[-1])

        assert len(measured["answers"]) == len(WIDE) + len(WIDEST)
        assert all(code in (200, 503) for code, _ in measured["answers"])
        # One body of them took the loop for 100 seconds.
        assert measured["cpu"] < 10
        assert measured["own"] + measured["judges"] < memory_limit()

    async def test_a_body_of_ordinary_shape_and_the_largest_size_is_judged(self):
        containers = [
            {
                "name": f"c{n}",
                "image": "x",
                "env": [{"name": f"E{k}", "value": "a"} for k in range(50)],
            }
            for n in range(1500)
        ]
        body = review({}, {"blueSpec": {"containers": containers}})
        assert len(body) > 1_500_000

        code, answer = await Judge(seconds=60)(body, BLUEGREEN, "validate")

        assert (code, answer["response"]["allowed"]) == (200, True)

    async def test_what_takes_too_much_memory_is_refused_with_a_sentence(self):
        with structlog.testing.capture_logs() as logs:
            body = review({}, {"ports": [EMPTY] * (MEMORY // 64)})
            code, answer = await Judge(seconds=60)(body, BLUEGREEN, "validate")

        response = answer["response"]
        assert (code, response["uid"], response["allowed"]) == (200, "705ab4f5", False)
        assert response["status"]["message"] == (
            "BlueGreen.app.demo.kakao.com was not judged: it is too large to be judged: no more"
            " than 60 s and 224 MiB are spent on it; make it smaller"
        )
        assert [line["event"] for line in logs] == ["review refused unjudged"]

    async def test_one_that_does_not_begin_as_the_api_server_writes_it_gets_an_error(self):
        body = b'{"a":[' + b"{}," * (MEMORY // 64) + b"{}]}"

        code, answer = await Judge(seconds=60)(body, BLUEGREEN, "validate")

        assert (code, list(answer)) == (503, ["message"])

    async def test_what_takes_too_long_is_ended(self):
        hangs = [
            sys.executable,
            "-c",
            "import sys; sys.stdin.read(); import signal; signal.pause()",
        ]
        code, answer = await Judge(hangs, seconds=0.5)(review(), BLUEGREEN, "validate")

        assert (code, answer["response"]["allowed"]) == (200, False)
        assert "0.5 s" in answer["response"]["status"]["message"]

    async def test_an_answer_without_end_is_cut(self, monkeypatch):
        monkeypatch.setattr(large_reviews, "LARGEST", 1000)
        endless = [sys.executable, "-c", "while True: print('x' * 100)"]
        code, answer = await Judge(endless, seconds=60)(review(), BLUEGREEN, "validate")

        assert (code, answer["response"]["allowed"]) == (200, False)

    async def test_one_that_ends_before_it_has_read_all_is_a_refusal(self):
        ends = [sys.executable, "-c", "raise SystemExit(1)"]
        body = review({}, {"ports": [EMPTY] * 300_000})
        _, answer = await Judge(ends, seconds=60)(body, BLUEGREEN, "validate")

        assert answer["response"]["allowed"] is False

    async def test_where_no_process_can_be_started_nothing_is_admitted(self):
        _, answer = await Judge(["/nonexistent"], seconds=60)(review(), BLUEGREEN, "validate")

        assert answer["response"]["allowed"] is False
        assert "no process can be started" in answer["response"]["status"]["message"]


class TestTurns:
    async def test_one_is_judged_at_a_time_and_few_wait(self, monkeypatch):
        under_way, most, go_on = [0], [0], anyio.Event()

        async def slow(*_: Any) -> Any:
            under_way[0] += 1
            most[0] = max(most)
            most[0] = max(most[0], under_way[0])
            await go_on.wait()
            under_way[0] -= 1
            return 200, admission.refusal("a", BLUEGREEN.resource.api, "judged")

        monkeypatch.setattr(Judge, "_judged", slow)
        judge, told = Judge(seconds=60), list[str]()

        async def ask() -> None:
            _, answer = await judge(review(), BLUEGREEN, "validate")
            told.append(answer["response"]["status"]["message"].partition(": ")[2])
            if len(told) == 2:
                go_on.set()

        async with anyio.create_task_group() as tasks:
            for _ in range(large_reviews.WAITING + 2):
                tasks.start_soon(ask)

        assert most == [1]
        busy = "too many large reviews at a time; try again in a moment"
        assert sorted(told) == sorted(["judged"] * large_reviews.WAITING + [busy] * 2)

    async def test_who_waits_in_vain_is_told_to_try_again(self, monkeypatch):
        began = anyio.Event()

        async def endless(*_: Any) -> Any:
            began.set()
            await anyio.sleep_forever()

        monkeypatch.setattr(Judge, "_judged", endless)
        judge = Judge(seconds=0.2)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(judge, review(), BLUEGREEN, "validate")
            await began.wait()
            judge._seconds = 0.0
            _, answer = await judge(review(), BLUEGREEN, "validate")

        assert "try again in a moment" in answer["response"]["status"]["message"]


class TestProgram:
    @pytest.mark.parametrize(
        ("content", "verb"),
        [(review(), "validate"), (b"[" * 300_000, "validate"), (b"", "validate")],
        ids=["good", "deep", "nothing"],
    )
    async def test_it_answers_what_the_serving_process_would(self, content, verb):
        ours = answered(content, BLUEGREEN, verb)

        assert await Judge(seconds=60)(content, BLUEGREEN, verb) == ours

    async def test_defaults_come_from_it_too(self):
        api = CRONJOB.resource.api
        own = {
            "kind": {"group": api.group, "version": api.version, "kind": api.kind},
            "resource": {"group": api.group, "version": api.version, "resource": api.plural},
            "object": {"metadata": {}, "spec": {"schedule": "@daily", "jobTemplate": {}}},
        }
        code, answer = await Judge(seconds=60)(review(**own), CRONJOB, "mutate")

        assert (code, "patch" in answer["response"]) == (200, True)


def memory_limit() -> int:
    """Return the bytes of the manifest's limit of memory."""
    text = (ROOT / "manifests/no-webhook/deployment.yaml").read_text("utf-8")
    container = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"][0]
    return int(container["resources"]["limits"]["memory"].removesuffix("Mi")) * 1024**2


_DRIVER = """
import json, resource, time
from pathlib import Path
import anyio, httpx
from hedgerow.serving.admission.configuration import path_of
from hedgerow.serving.admission.large_reviews import Judge
from hedgerow.serving.admission.handlers import webhook_app
from serving.admission.test_large_reviews import BLUEGREEN, WIDE, WIDEST, review

async def main():
    answers, cpu = [], 0.0
    transport = httpx.ASGITransport(webhook_app([BLUEGREEN], large=Judge(seconds=60)))
    async with httpx.AsyncClient(transport=transport, base_url="https://x", timeout=60) as client:
        for size, field in [(250_000, one) for one in WIDE] + [(6_500_000, one) for one in WIDEST]:
            body = review(*WIDE[field](size))
            began = time.process_time()
            answer = await client.post(
                path_of("validate", BLUEGREEN.resource.api),
                content=body,
                headers={"Content-Type": "application/json"},
            )
            cpu += time.process_time() - began
            answers.append((answer.status_code, len(body)))
    lines = Path("/proc/self/status").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    judges = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(json.dumps({"answers": answers, "cpu": cpu, "own": own, "judges": judges}))

anyio.run(main)
"""
