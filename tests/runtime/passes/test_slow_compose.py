"""A compose that blocks the event loop is named with its duration, within bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hedgerow import Apply, Desired
from hedgerow_testing import InMemory, target
from library.greeter import GREETER, ConfigMap

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

    def run(self, in_memory: Any) -> InMemory:
        """Run it on one resource."""
        controller = replace(GREETER, compose=self, child_names={ConfigMap: ("{}-*",)})
        self.cluster = in_memory(controller, program="greeter")
        self.cluster.apply(HELLO | {"spec": {"name": "you"}})
        self.cluster.pass_time(5)
        return self.cluster


def told(capsys: Any) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if TOLD in line]


class TestACallOfCompose:
    @pytest.mark.parametrize("fails", [False, True])
    def test_is_named_with_its_resource_and_duration_once_in_a_row(self, in_memory, capsys, fails):
        compose = Blocking(0.3, fails=fails)
        compose.run(in_memory)

        assert compose.calls > 2
        [line] = told(capsys)
        for word in ("warning", "controller=greeter", "object=default/hello", "seconds=0.3"):
            assert word in line
        assert "must not wait for a network or sleep" in line

    def test_is_named_again_after_one_that_was_quick(self, in_memory, capsys):
        compose = Blocking(0.3)
        cluster = compose.run(in_memory)
        for compose.seconds in (0.0, 0.4):
            cluster.apply(HELLO | {"spec": {"name": f"{compose.seconds}"}})
            cluster.pass_time(5)

        assert ["seconds=0.3" in line for line in told(capsys)] == [True, False]

    def test_is_not_if_it_is_quick(self, in_memory, capsys):
        Blocking(0.19).run(in_memory)

        assert told(capsys) == []
