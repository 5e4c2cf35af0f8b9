"""What is kept of watched objects: enough to compare, little, and no value of a Secret."""

from __future__ import annotations

import base64
import copy
import gc
import hashlib
from typing import Any

import pytest

from hedgerow_tools.fields.changes import changes
from hedgerow_tools.watch.memory import LONG, Memory, kept_phase, phase_of
from tools.watch.configs import config

Object = dict[str, Any]


def noise(name: str) -> Object:
    """Return an object that cannot be compressed."""
    return {**config(name), "data": {"x": hashlib.sha256(name.encode()).hexdigest()}}


def secret(**data: str) -> Object:
    meta = {"name": "s", "namespace": "ns", "uid": "u", "resourceVersion": "1"}
    meta["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "MARKER-applied"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data}


def paths(memory: Memory, before: Object, after: Object) -> list[str]:
    states = [memory.state(memory.reduce(obj)) for obj in (before, after)]
    assert None not in states
    return [change.path for change in changes(*states)]


class TestKept:
    def test_it_is_identity_phase_and_a_state_that_can_be_read_again(self):
        memory = Memory("key")
        pod = {
            **config("p"),
            "metadata": {**config("p")["metadata"], "uid": "u", "resourceVersion": "7", "x": [1]},
            "status": {"phase": "Running", "n": 1.5, "none": None},
        }

        kept = memory.reduce(copy.deepcopy(pod))

        identity = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "7"}
        assert kept["metadata"] == identity
        assert kept_phase(kept) == "Running"
        assert memory.state(kept) == pod

    def test_objects_that_are_alike_take_a_fraction_of_their_json(self):
        memory = Memory("key")
        entry = {"manager": "m", "fieldsV1": {f"f:field-{n}": {} for n in range(100)}}
        size = len(str(entry))

        kept = [
            memory.reduce(
                {
                    **config(f"c{n}"),
                    "metadata": {**config(f"c{n}")["metadata"], "managedFields": [entry]},
                    "data": noise(f"{n}")["data"],
                }
            )
            for n in range(20)
        ]

        assert max(len(each["state"]) for each in kept[1:]) < size / 8

    def test_long_texts_are_compared_and_not_kept(self):
        memory = Memory("key")
        before = {**config("c"), "data": {"short": "s", "long": "MARKER" * LONG}}
        after = {**config("c"), "data": {"short": "s", "long": "MARKER" * LONG + "!"}}

        assert paths(memory, before, after) == [".data.long"]
        assert paths(memory, before, before) == []
        assert "MARKER" not in str(memory.state(memory.reduce(before)))

    def test_long_items_of_lists_stay_for_they_may_be_keys(self):
        memory = Memory("key")
        whole = {**config("c"), "list": ["x" * 2 * LONG]}

        assert memory.state(memory.reduce(whole)) == whole


class TestSecrets:
    def test_values_are_compared_and_not_kept(self):
        memory = Memory("key")
        before = secret(a="TUFSS0VSLWE=", b="TUFSS0VSLWI=")
        after = secret(a="TUFSS0VSLWE=", b="TUFSS0VSLWM=", c="TUFSS0VSLWM=")

        assert paths(memory, before, after) == [".data.b", ".data.c"]
        for kept in map(memory.reduce, (before, after)):
            state = str(memory.state(kept))
            assert "MARKER" not in state
            assert "TUFSS0VS" not in state
            for text in (state, str(kept)):
                assert base64.b64encode(b"MARKER").decode()[:8] not in text

    def test_a_digest_tells_nothing_to_whoever_does_not_know_the_key(self):
        memories = Memory("k1"), Memory("k2")
        first, second = (each.state(each.reduce(secret(a="eA=="))) for each in memories)

        assert first["data"].keys() == second["data"].keys()
        assert first["data"] != second["data"]


class TestBounds:
    def test_what_does_not_fit_is_kept_without_its_state(self):
        memory = Memory("key")
        memory.reduce(noise("what the others are like"))
        fits = memory.reduce(noise("a"))
        memory.settle(None, fits)
        memory.most = memory.weight + len(fits["state"]) // 2
        further = memory.reduce(noise("b"))

        assert memory.state(fits) == noise("a")
        assert memory.state(further) is None
        assert (memory.weight, memory.forgotten) == (len(fits["state"]), 1)
        assert further["metadata"]["name"] == "b"

    def test_room_that_becomes_free_is_used_again(self):
        memory = Memory("key", most=1)
        kept = memory.reduce(config("a"))
        assert (memory.state(kept), memory.forgotten) == (None, 1)

        memory.most = 10_000
        fits = memory.reduce(config("a"))
        memory.settle(None, fits)
        assert memory.weight > 0
        memory.settle(fits, None)

        assert memory.weight == 0

    def test_an_object_of_a_thousand_takes_little_more_than_its_state(self):
        import tracemalloc

        memory = Memory("key")
        made = [
            {**config(f"c{n}"), "data": {f"k{m}": f"value-{m}" for m in range(50)}}
            for n in range(1000)
        ]
        memory.reduce(made[0])
        gc.collect()
        tracemalloc.start()
        kept = list(map(memory.reduce, made))
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert size / len(kept) < 1000


class TestPhase:
    def test_of_a_long_one_the_beginning_is_kept(self):
        """The phase is kept of every object, whatever fits besides."""
        kept = Memory("key", 0).reduce({"metadata": {"name": "a"}, "status": {"phase": "é" * 9999}})

        assert kept_phase(kept) == "é" * 128

    @pytest.mark.parametrize(
        ("status", "phase"),
        [
            ({"phase": "Pending"}, "Pending"),
            ({"phase": "", "conditions": [{"type": "Ready", "status": "True"}]}, "Ready"),
            ({"conditions": [{"type": "Ready", "status": "False", "reason": "R"}]}, "not Ready: R"),
            ({"phase": 3}, ""),
            ({}, ""),
            (None, ""),
        ],
    )
    def test_it_is_status_phase_or_else_what_the_status_says(self, status, phase):
        assert phase_of({**config("c"), "status": status}) == phase

    def test_a_kind_without_a_phase_has_its_readiness(self):
        live = {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"availableReplicas": 1}}

        assert phase_of({**live, "spec": {"replicas": 2}}) == "available 1/2, 0 updated"
