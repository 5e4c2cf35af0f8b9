"""Threads: the event loop is not kept by the garbage collector, nor by a thread."""

from __future__ import annotations

import gc
import sys

from hedgerow import threads


def test_favouring_the_loop_collects_seldom_and_has_threads_give_way(
    monkeypatch,
):
    told: list[tuple[str, object]] = []
    for name in ("freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *given, name=name: told.append((name, given)))
    monkeypatch.setattr(sys, "setswitchinterval", lambda given: told.append(("switch", given)))

    threads.tune_for_event_loop()

    assert [name for name, _ in told] == ["freeze", "set_threshold", "switch"]
    # Than the interpreter's own, which another test may have changed in this process.
    assert dict(told)["set_threshold"] > (700, 10, 10)
    assert 0 < float(str(dict(told)["switch"])) < 0.005
