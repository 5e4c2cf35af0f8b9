"""Mutants: faults put into the operator on purpose, each of which the quick share has to catch."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import getsource
from types import CodeType, FunctionType


@dataclass(frozen=True)
class Mutant:
    """One fault in one function: `old` stands once in the module's source.

    `case` is the one of the quick share that caught it before; it is tried first.
    """

    name: str
    module: str
    old: str
    new: str
    case: str = ""

    def __str__(self) -> str:
        return self.name


MUTANTS = (
    Mutant(
        "a refused status is never tried again",
        "hedgerow.runtime.report.status",
        "waits = state.refusals.waiting(STATUS, version, now)",
        "waits = STATUS in state.refusals",
        "bluegreen-changed: refused with 409 at write 8",
    ),
    Mutant(
        "a name that is taken is never looked at again",
        "hedgerow.runtime.resource_pass",
        "recheck = state.recheck_in(now) if waits or state.taken else None",
        "recheck = None",
        "bluegreen-names: refused with 503 at Lease write 6",
    ),
    Mutant(
        "a start is dated in the future",
        "hedgerow.controllers.cronjob.controller",
        "due = None if cj.spec.suspend else plan.due",
        "due = None if cj.spec.suspend else plan.upcoming",
        "cronjob-on-time with 2 replicas: leader asked to stop at write 2",
    ),
    Mutant(
        "a start is named after the second in which it is made",
        "hedgerow.controllers.cronjob.controller",
        "starts.creation(cj, due)",
        "starts.creation(cj, now)",
        "cronjob-on-time: dropped before it arrived for 150 s at write 4",
    ),
    Mutant(
        "a time to look again is forgotten",
        "hedgerow.runtime.runner",
        "if outcome.requeue_after is not None:",
        "if outcome.requeue_after is not None and not outcome.refused:",
        "bluegreen-changed: refused with 409 at write 8",
    ),
    Mutant(
        "a pass that is put off is not made again",
        "hedgerow.runtime.workqueue",
        "self._on_retry()\n        self.add_after(key, delay)",
        "self._on_retry()",
        "bluegreen-lost: dropped before it arrived for 150 s at write 5",
    ),
    Mutant(
        "passes are put off for ever so short a time",
        "hedgerow.runtime.workqueue",
        "backoff(failures, draw",
        "backoff(1, draw",
        "bluegreen-lost: dropped before it arrived for 150 s at write 5",
    ),
    Mutant(
        "a refused request is sent each second",
        "hedgerow.runtime.refusals",
        "backoff(attempts, draw",
        "backoff(1, draw",
        "cronjob-replacing: refused with 403 for 150 s at write 4",
    ),
    Mutant(
        "a deletion is taken for done before it is",
        "hedgerow.runtime.writer",
        "await self._context.applier.delete(deletion)\n",
        "self._state.pruned[deletion.id] = deletion.ref.uid\n"
        "        await self._context.applier.delete(deletion)\n",
        "cronjob-replacing: refused with 403 for 150 s at write 4",
    ),
    Mutant(
        "a version that is too old is asked for for ever",
        "hedgerow.kube.watch",
        "(Gone, Garbled, Invalid, Missing)",
        "(Garbled, Invalid, Missing)",
        "bluegreen-names: stale when opened again of Service at write 0",
    ),
    Mutant(
        "a watch is opened again without a pause",
        "hedgerow.kube.watch",
        "(None, None if routine else error, backoff(failures, draw, error.after))",
        "(None, None if routine else error, 0.0)",
        "bluegreen-names: API server away for 5 s at write 10",
    ),
    Mutant(
        "a watch that is silent is waited for",
        "hedgerow.kube.session",
        "watch = login.exchange(request, read=idle)",
        "watch = login.exchange(request, read=1e9)",
        "cronjob-replacing: silent of Job at write 5",
    ),
    Mutant(
        "what a list does not have stays in the cache",
        "hedgerow.runtime.cache.store",
        "if rewound or entry.version <= number",
        "if rewound or entry.version <= 0",
        "bluegreen-lost: API server restarted for 5 s at write 6",
    ),
    Mutant(
        "answers to writes are not taken in",
        "hedgerow.runtime.cache.store",
        "if version_of(obj) > self.version:",
        "if version_of(obj) < 0:",
        "cronjob-replacing: silent of Job at write 5",
    ),
    Mutant(
        "a lease is taken from who holds it",
        "hedgerow.runtime.leaderelection.record",
        "self._free_from = now if vacant else self._expires",
        "self._free_from = now",
        "bluegreen-lost with 2 replicas: leader cut off at write 20",
    ),
    Mutant(
        "a deletion is of whatever has the name",
        "hedgerow.runtime.applier",
        "uid=ref.uid, version=deletion.version",
        'uid="", version=deletion.version',
        "bluegreen-lost with 2 replicas: leader cut off at write 20",
    ),
    Mutant(
        "what is gone asks for no pass",
        "hedgerow.runtime.watches",
        "for obj in filter(None, change):",
        "for obj in filter(None, change[1:]):",
        "bluegreen-names: refused with 503 at Lease write 6",
    ),
    Mutant(
        "a pass that the server did not answer is not made again",
        "hedgerow.runtime.runner",
        "delay = self.queue.retry(key, least=error.after)",
        "delay = error.after",
        "bluegreen-lost: dropped before it arrived for 150 s at write 5",
    ),
    Mutant(
        "a status tells of an earlier generation",
        "hedgerow.plan.status",
        '"observed_generation": generation,',
        '"observed_generation": max(generation - 1, 1),',
        "bluegreen-flipped: clock a year behind for 120 s at write 2",
    ),
    Mutant(
        "fields are taken by force",
        "hedgerow.runtime.applier",
        "force=bool(write.claims)",
        "force=not write.create",
        "bluegreen-flipped: clock a year behind for 120 s at write 2",
    ),
)


LONGEST = 60.0
"""Seconds of CPU after which a share that does not end has caught its mutant."""


class Anchor(Exception):
    """The text that a mutant replaces is not there exactly once, or its change changes nothing."""


def caught(mutant: Mutant, share: Callable[[], Iterator[str]]) -> str:
    """Return the first thing that the share finds wrong with a mutant; nothing for a survivor.

    The share runs in a child process, so that the mutant dies with it. Raises Anchor.
    """
    changes = list(_changes(mutant))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(changes, share, writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        found = told.read()
    os.waitpid(child, 0)
    return found


def _in_child(
    changes: list[tuple[FunctionType, CodeType]], share: Callable[[], Iterator[str]], writing: int
) -> None:
    said = ""

    def stop(*_: object) -> None:
        os.write(writing, b"it does not come to an end")
        os._exit(0)

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        for function, code in changes:
            function.__code__ = code
        said = next(share(), "")
    except BaseException:  # noqa: BLE001 - what it dies of catches it
        said = traceback.format_exc(limit=-3)
    finally:
        os.write(writing, said.encode()[:4000])
        os._exit(0)


def _changes(mutant: Mutant) -> Iterator[tuple[FunctionType, CodeType]]:
    """Yield each function that a mutant changes, and its new code."""
    module = importlib.import_module(mutant.module)
    source = getsource(module)
    if source.count(mutant.old) != 1:
        raise Anchor(f"{mutant.old!r} stands {source.count(mutant.old)} times in {mutant.module}")
    file = str(module.__file__)
    before = {
        code.co_qualname: code for code in _codes(compile(source, file, "exec", dont_inherit=True))
    }
    mutated = source.replace(mutant.old, mutant.new)
    after = {
        code.co_qualname: code for code in _codes(compile(mutated, file, "exec", dont_inherit=True))
    }
    changed = {name: code for name, code in after.items() if _plain(code) != _plain(before[name])}
    gc.unfreeze()  # what is frozen is not listed
    found = [
        (function, changed[function.__code__.co_qualname])
        for function in gc.get_objects()
        if isinstance(function, FunctionType)
        and function.__module__ == mutant.module
        and function.__code__.co_qualname in changed
    ]
    gc.freeze()
    if not found:
        raise Anchor(f"{mutant} changes no function of {mutant.module}")
    yield from found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _plain(code: CodeType) -> tuple[object, ...]:
    """Return what a function does, and the functions in it: what it is made of without lines."""
    constants = (_plain(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts)
    return code.co_code, code.co_names, *constants
