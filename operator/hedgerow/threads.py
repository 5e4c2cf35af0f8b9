"""Threads: the garbage collector and the switches of threads, so that the event loop goes on."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH: Final = 0.001
"""Seconds after which a thread gives the interpreter to another one."""
COLLECTED: Final = (1_000, 4, 10_000)
"""Thresholds of the garbage collector: objects, young collections, middle collections.

It counts what was made less what was freed. While caches fill, old objects are freed as they are
packed, so that five times as many are young as it counts: with thresholds of 20,000 and 20, one
collection of the middle generation took 245 ms for 90,000 objects; with these, 26 ms. A full one is
as rare as it would be.
"""


def tune_for_event_loop() -> None:
    """Keep the garbage collector, and work in threads, from blocking the event loop.

    A full collection visits every map and list: 70 ms with a dozen large objects in the caches, and
    reading one object of 1 MB can start it. Objects made by imports live for ever, so they are
    excluded; a collection before that would take 30 ms and find next to nothing. The others, nearly
    all without cycles, are hardly ever collected as a whole. A busy thread gives up the interpreter
    after `SWITCH` seconds; waits of the default 5 ms would add up.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    sys.setswitchinterval(SWITCH)
