"""A compose that blocks the event loop is named with its duration, within bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hedgerow import Apply, Desired
from hedgerow.runtime.meters import Meters
from hedgerow.runtime.passes.slow_compose import SILENCE, SlowCompose
from hedgerow_testing import InMemory, target
from library.greeter import GREETER, ConfigMap

NAME = "hedgerow_slow_compose_seconds"
HELLO = target("greeter.example.com/v1", "Greeting", "hello", "default")
TOLD = "compose blocks the event loop"


class Blocking:
    """A compose that takes its time: nothing else happens meanwhile."""

    def __init__(self, seconds: float, children: int = 1, fails: bool = False) -> None:
        self.seconds, self.children, self.fails = seconds, children, fails
        self.cluster: InMemory | None = None
        self.calls = 0

    def __call__(self, *_: Any) -> Desired:
        self.calls += 1
        if self.cluster:
            calls = 1 if self.fails else 2  # it is asked twice at each look
            self.cluster._loop.elapsed += self.seconds / calls
        if self.fails:
            raise TimeoutError
        data = {"data": {"a": "b"}}
        return Desired(tuple(Apply(ConfigMap, f"hello-{n}", data) for n in range(self.children)))

    def run(self, in_memory: Any) -> dict[str, float]:
        """Run it on one resource; return the metric's count and sum."""
        controller = replace(GREETER, compose=self, child_names={ConfigMap: ("{}-*",)})
        self.cluster = in_memory(controller, program="greeter")
        self.cluster.apply(HELLO | {"spec": {"name": "you"}})
        self.cluster.pass_time(5)
        registry = self.cluster._runners[0]._meter._meters.registry
        told = {name: registry.get_sample_value(f"{NAME}_{name}", {"controller": "greeter"})
                for name in ("count", "sum")}  # fmt: skip
        return {name: value or 0.0 for name, value in told.items()}


class TestACallOfCompose:
    @pytest.mark.parametrize("fails", [False, True])
    def test_is_named_with_its_resource_and_duration(self, in_memory, capsys, fails):
        told = Blocking(0.3, fails=fails).run(in_memory)
        lines = [line for line in capsys.readouterr().err.splitlines() if TOLD in line]

        assert told["count"] >= 1
        assert told["sum"] == pytest.approx(0.3 * told["count"])
        assert len(lines) == 1
        for word in ("warning", "controller=greeter", "object=default/hello", "seconds=0.3"):
            assert word in lines[0]
        assert "must not wait for a network or sleep" in lines[0]

    def test_is_not_if_it_is_quick(self, in_memory, capsys):
        assert Blocking(0.19).run(in_memory) == {"count": 0, "sum": 0}
        assert TOLD not in capsys.readouterr().err


class TestTheLog:
    def test_has_a_line_a_minute_and_says_how_many_had_none(self, capsys):
        class Clock:
            time = 0.0

            def monotonic(self) -> float:
                return self.time

        clock, meters = Clock(), Meters()
        slow = SlowCompose(clock, meters.of_controller("greeter"))  # type: ignore[arg-type]
        for _ in range(600):
            slow.took(0.5)
            clock.time += 1
        lines = [line for line in capsys.readouterr().out.splitlines() if TOLD in line]

        assert len(lines) == 600 / SILENCE
        assert "unlogged_before=0" in lines[0]
        assert all("unlogged_before=59" in line for line in lines[1:])
        labels = {"controller": "greeter"}
        assert meters.registry.get_sample_value(f"{NAME}_count", labels) == 600
        assert meters.registry.get_sample_value(f"{NAME}_sum", labels) == 300
