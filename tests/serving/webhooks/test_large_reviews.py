"""Large reviews: what is judged, what is refused undecoded, and what both may cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, cast

import anyio
import pytest
import yaml
from anyio.lowlevel import checkpoint

from hedgerow.contract import Controller
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.serving.admission import review as admission
from hedgerow.serving.httpserver.limits import BODY, FREE
from hedgerow.serving.webhooks import answering
from hedgerow.serving.webhooks.answering import LARGEST, MOST_OPENINGS, answered
from serving import reviews
from support.code.sources import ROOT

pytestmark = pytest.mark.anyio

Object = dict[str, Any]
BLUEGREEN = cast("Controller[Any]", bluegreen.CONTROLLER)
PODS = {"containers": [{"name": "c"}]}
EMPTY: Object = {}
ODD: Object = {"managedFields": ["ODD"]}
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
MOST_ERRORS = 200


def review(meta: Object | None = None, spec: Object | None = None, **more: Any) -> bytes:
    made = {
        "metadata": {"name": "x", **(meta or {})},
        "spec": {"routeTo": "Blue", "blueSpec": PODS, **(spec or {})},
    }
    body = reviews.review(made, controller=BLUEGREEN, **more)
    return json.dumps(body, separators=(",", ":")).encode()


def manifest(size: int) -> Object:
    """Return an object of about so many bytes as `kubectl apply` stores it, managed fields too."""
    environment = [{"name": f"E{n}", "value": "a" * 30} for n in range(50)]
    owned = {f'k:{{"name":"E{n}"}}': {".": {}, "f:name": {}, "f:value": {}} for n in range(50)}
    one = {"name": "c0", "image": "x", "env": environment}
    count = size // len(json.dumps([one, owned], separators=(",", ":")))
    fields = {f'k:{{"name":"c{n}"}}': {".": {}, "f:env": owned} for n in range(count)}
    return {
        "metadata": {"name": "x", "managedFields": [{"fieldsV1": {"f:spec": fields}}]},
        "spec": {
            "routeTo": "Blue",
            "blueSpec": {"containers": [one | {"name": f"c{n}"} for n in range(count)]},
        },
    }


def padded(size: int) -> Object:
    """Return a good object of exactly so many bytes."""
    obj: Object = {"metadata": {"name": "x", "note": ""}, "spec": {"blueSpec": PODS}}
    obj["spec"]["routeTo"] = "Blue"
    obj["metadata"]["note"] = "a" * (size - len(json.dumps(obj, separators=(",", ":"))))
    return obj


def whole(body: Object) -> bytes:
    """Return a review as bytes, with managed fields that cannot be decoded for `ODD`."""
    return json.dumps(body).encode().replace(b'"ODD"', b'{"f:a":' * 9_000 + b"{}" + b"}" * 9_000)


def sizes_decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of all texts that are decoded from now on."""
    decoded: list[int] = []
    original = answering.decode

    def noted(content: bytes) -> Any:
        decoded.append(len(content))
        return original(content)

    monkeypatch.setattr(answering, "decode", noted)
    return decoded


REMEDIES = {
    "object": "make it smaller",
    "oldObject": "delete what is stored, and create a smaller one",
}


class TestWork:
    @pytest.mark.parametrize("field", WIDE)
    def test_a_wide_list_is_no_error_for_each_of_its_items(self, field):
        """A model that is shown the list makes one for each, and keeps all else waiting for it."""
        body = json.loads(review(*WIDE[field](FREE)))["request"]["object"]

        found = list(admission.errors_of(body, BLUEGREEN))

        assert len(found) <= MOST_ERRORS
        assert sum(len(str(error)) for error in found) < FREE

    async def test_a_list_that_is_too_long_is_told_with_its_bound(self):
        answer = await answered(review({}, {"ports": [EMPTY] * 33}), BLUEGREEN)

        assert answer["response"]["status"]["details"]["causes"] == [
            {
                "reason": "FieldValueTooMany",
                "message": "Too many: 33: must have at most 32 items",
                "field": "spec.ports",
            }
        ]

    async def test_the_event_loop_goes_on_between_the_objects_of_a_large_one(self):
        body = review(operation="UPDATE", object=manifest(FREE * 2), oldObject=manifest(FREE * 2))
        turns, done = 0, anyio.Event()

        async def count() -> None:
            nonlocal turns
            while not done.is_set():
                await checkpoint()
                turns += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            await checkpoint()
            turns = 0
            await answered(body, BLUEGREEN)
            done.set()

        assert turns >= 2

    async def test_the_event_loop_stands_still_for_no_work_on_each_item(self):
        """Between two turns one object is decoded, and few functions are called: 400 of them."""
        obj = manifest(LARGEST * 98 // 100)
        assert 80_000 < json.dumps(obj).count("{") < MOST_OPENINGS
        body = review(operation="UPDATE", object=obj, oldObject=obj)
        calls, stretches, done = 0, list[int](), anyio.Event()

        def called(_: Any, event: str, __: Any) -> None:
            nonlocal calls
            calls += event in {"call", "c_call"}

        async def turn() -> None:
            nonlocal calls
            while not done.is_set():
                stretches.append(calls)
                calls = 0
                await checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn)
            await checkpoint()
            sys.setprofile(called)
            try:
                answer = await answered(body, BLUEGREEN)
            finally:
                sys.setprofile(None)
            stretches.append(calls)
            done.set()

        assert answer["response"]["allowed"] is True
        assert len(stretches) >= 4
        assert max(stretches) < 1_000


class TestSize:
    async def test_whatever_the_server_stores_is_judged(self):
        obj = manifest(LARGEST * 98 // 100)
        body = review(operation="UPDATE", object=obj, oldObject=obj)
        assert len(body) > 1.9 * LARGEST

        answer = await answered(body, BLUEGREEN)

        assert answer["response"] == {"uid": "705ab4f5", "allowed": True}

    @pytest.mark.parametrize("name", ["object", "oldObject"])
    async def test_a_larger_object_is_refused_with_a_sentence(self, name, monkeypatch):
        small, large = padded(LARGEST), padded(LARGEST + 1)
        objects = {"object": small, "oldObject": small}
        body = review(operation="UPDATE", **objects)
        answer = await answered(body, BLUEGREEN)
        assert answer["response"]["allowed"] is True

        decoded = sizes_decoded(monkeypatch)
        body = review(operation="UPDATE", **objects | {name: large})
        answer = await answered(body, BLUEGREEN)

        response = answer["response"]
        assert (response["uid"], response["allowed"]) == ("705ab4f5", False)
        assert response["status"]["message"] == (
            f"BlueGreen.app.demo.kakao.com was not judged: {name} has {LARGEST + 1} bytes as JSON,"
            f" and no more than {LARGEST} are judged; {REMEDIES[name]}"
        )
        assert max(decoded) < FREE

    @pytest.mark.parametrize("name", ["object", "oldObject"])
    @pytest.mark.parametrize(("item", "each"), [([], 1), ([[[]]], 3), ({"a": {"b": 1}}, 2)])
    async def test_of_more_maps_and_lists_none_is_decoded(self, name, item, each, monkeypatch):
        """They take the loop's time, not their bytes: 750,000 lists in 1.5 MB took 0.3 seconds."""
        decoded = sizes_decoded(monkeypatch)
        many = padded(100) | {"note": [item] * (MOST_OPENINGS // each + 1)}
        objects = {"object": padded(100), "oldObject": padded(100)} | {name: many}
        answer = await answered(review(operation="UPDATE", **objects), BLUEGREEN)

        said = answer["response"]["status"]["message"]
        assert said.startswith(f"BlueGreen.app.demo.kakao.com was not judged: {name} has 131")
        assert said.endswith(
            f" opening brackets as JSON, and no more than {MOST_OPENINGS} are judged;"
            f" {REMEDIES[name]}"
        )
        assert max(decoded) < 100

    async def test_brackets_in_a_text_are_neither_maps_nor_lists(self):
        note = '[[1],[2],"\\\\"]' * (MOST_OPENINGS // 3)
        body = review(operation="UPDATE", object=padded(100) | {"note": note})
        answer = await answered(body, BLUEGREEN)

        assert answer["response"]["allowed"] is True

    @pytest.mark.parametrize("odd", [EMPTY, ODD], ids=["plain", "with an odd object"])
    @pytest.mark.parametrize("place", ["top", "request"])
    async def test_what_is_not_judged_is_not_decoded(self, place, odd, monkeypatch):
        """The API server sends nothing of that kind; a client may send 5 MB of empty lists."""
        body = json.loads(review(odd))
        (body if place == "top" else body["request"])["more"] = [EMPTY] * FREE
        decoded = sizes_decoded(monkeypatch)

        answer = await answered(whole(body), BLUEGREEN)

        assert answer["response"]["allowed"] is True
        assert max(decoded) < FREE

    @pytest.mark.parametrize("name", ["uid", "kind", "resource", "operation", "subResource"])
    async def test_what_no_api_server_sends_so_large_is_refused_undecoded(self, name, monkeypatch):
        decoded = sizes_decoded(monkeypatch)

        with pytest.raises(ValueError, match=rf"^request\.{name}: it is too long$"):
            await answered(review(**{name: [EMPTY] * FREE}), BLUEGREEN)

        assert decoded == []

    async def test_who_asks_is_not_read(self, monkeypatch):
        decoded = sizes_decoded(monkeypatch)
        body = review(userInfo={"groups": ["a"] * FREE})

        answer = await answered(body, BLUEGREEN)

        assert answer["response"]["allowed"] is True
        assert max(decoded) < FREE

    def test_a_body_holds_what_the_server_reads_and_what_it_stored(self):
        assert BODY >= 3 * 1024**2 + LARGEST


class TestUndecodable:
    @pytest.mark.parametrize("odd", [b'{"f:a":' * 9_000 + b"{}" + b"}" * 9_000, b'"\xff"'])
    async def test_an_object_is_admitted_since_it_is_not_served(self, odd):
        body = review(ODD, {"routeTo": "Nowhere"})
        answer = await answered(body.replace(b'"ODD"', odd), BLUEGREEN)

        response = answer["response"]
        assert (response["uid"], response["allowed"]) == ("705ab4f5", True)
        assert response["warnings"][0].startswith(
            "it is not served: it cannot be decoded: its JSON"
        )
        assert len(response["warnings"][0]) <= 256

    @pytest.mark.parametrize(("spec", "allowed"), [({}, True), ({"routeTo": "Nowhere"}, False)])
    async def test_a_stored_object_excuses_nothing_of_the_new_one(self, spec, allowed):
        stored = {"metadata": {"name": "x", **ODD}, "spec": {"routeTo": "Nowhere"}}
        body = json.loads(review({}, spec, operation="UPDATE", oldObject=stored))
        answer = await answered(whole(body), BLUEGREEN)

        assert answer["response"]["allowed"] is allowed


class TestLimits:
    def test_no_body_takes_the_memory_and_the_time_of_the_process(self):
        done = subprocess.run(
            [sys.executable, "-c", _DRIVER],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        )
        measured = json.loads(done.stdout.splitlines()[-1])

        assert measured["codes"] == [200] * 2 * len(WIDE)
        # A model that was shown a wide list took the loop for 100 seconds.
        assert measured["cpu"] < 20
        assert measured["memory"] < memory_limit()


def memory_limit() -> int:
    """Return the bytes of the manifest's limit of memory."""
    text = (ROOT / "manifests/no-webhook/deployment.yaml").read_text("utf-8")
    container = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"][0]
    return int(container["resources"]["limits"]["memory"].removesuffix("Mi")) * 1024**2


_DRIVER = """
import json, time
from pathlib import Path
import anyio, httpx
from hedgerow.serving.admission.configuration import path_of
from hedgerow.serving.webhooks.handlers import webhook_app
from serving.webhooks.test_large_reviews import BLUEGREEN, WIDE, review

async def main():
    codes, cpu = [], 0.0
    transport = httpx.ASGITransport(webhook_app([BLUEGREEN]))
    async with httpx.AsyncClient(transport=transport, base_url="https://x", timeout=60) as client:
        for size in (250_000, 4_500_000):
            for field in WIDE:
                body = review(*WIDE[field](size))
                began = time.process_time()
                answer = await client.post(
                    path_of(BLUEGREEN.resource.api),
                    content=body,
                    headers={"Content-Type": "application/json"},
                )
                cpu += time.process_time() - began
                codes.append(answer.status_code)
    lines = Path("/proc/self/status").read_text().splitlines()
    memory = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    print(json.dumps({"codes": codes, "cpu": cpu, "memory": memory}))

anyio.run(main)
"""
