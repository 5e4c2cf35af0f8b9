"""Named: faults that somebody could make, each of which the quick share of `tests/faults` finds.

What finds a mutant of the sample may be a test of one function. These are about what is seen only
after a while: a request too many, a pass that is never made, an object that stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutants.sample import Mutant

AREA = "named"
TESTS = ("tests/faults/test_model_faults.py",)
"""What has to find them: scenarios with faults, on the cluster in memory."""


class Named(NamedTuple):
    """One fault: `old` stands once in the file."""

    name: str
    path: str
    old: str
    new: str


def named(root: Path) -> Iterator[Mutant]:
    """Yield them for a tree; one whose text is not there once has no source."""
    for name, path, old, new in NAMED:
        text = (root / path).read_text("utf-8") if (root / path).exists() else ""
        first = text.partition(old)[0].count("\n") + 1
        last = first + old.rstrip("\n").count("\n")
        source = text.replace(old, new) if text.count(old) == 1 else ""
        yield Mutant(f"{AREA}: {name}", path, first, last, old, source, TESTS)


NAMED = (
    Named(
        "a refused status is never tried again",
        "operator/hedgerow/runtime/passes/report.py",
        "elif not ledger.waits(write, current.now):",
        "elif not ledger.entry(write.id).attempts:",
    ),
    Named(
        "a name that is taken is never looked at again",
        "operator/hedgerow/plan/ledger.py",
        "if target in targets or entry.state is EntryState.TAKEN",
        "if target in targets",
    ),
    Named(
        "a start is dated in the future",
        "operator/hedgerow/controllers/cronjob/controller.py",
        "due = None if cj.spec.suspend else plan.due",
        "due = None if cj.spec.suspend else plan.upcoming",
    ),
    Named(
        "a start is named after the second in which it is made",
        "operator/hedgerow/controllers/cronjob/controller.py",
        "starts.creation(cj, due)",
        "starts.creation(cj, now)",
    ),
    Named(
        "a time to look again is forgotten",
        "operator/hedgerow/runtime/runner.py",
        "if outcome.requeue_after is not None:",
        "if outcome.requeue_after is not None and not outcome.refused:",
    ),
    Named(
        "a pass that is put off is not made again",
        "operator/hedgerow/runtime/workqueue.py",
        "        self._delay(key, delay, QueueLine.CHANGED, is_barred=least > 0)\n",
        "",
    ),
    Named(
        "passes are put off for ever so short a time",
        "operator/hedgerow/runtime/workqueue.py",
        "backoff(failures, draw",
        "backoff(1, draw",
    ),
    Named(
        "a refused request is sent each second",
        "operator/hedgerow/plan/ledger.py",
        "backoff(attempts, draw",
        "backoff(1, draw",
    ),
    Named(
        "a refused write is repeated at once",
        "operator/hedgerow/plan/ledger.py",
        "return content == self.content and (intent == self.intent or self.attempts > 1)",
        "return False",
    ),
    Named(
        "an apply is to whatever has the name",
        "operator/hedgerow/plan/children.py",
        '            "uid": ref.uid,\n            **(',
        "            **(",
    ),
    Named(
        "a deletion is taken for done before it is",
        "operator/hedgerow/runtime/passes/writer.py",
        "await self._context.applier.delete(deletion)\n",
        "self._state.ledger.deleted(deletion, self._context.planner.clock.now())\n"
        "        await self._context.applier.delete(deletion)\n",
    ),
    Named(
        "a version that is too old is asked for for ever",
        "operator/hedgerow/kube/watch.py",
        "(Gone, Garbled, Invalid, Missing)",
        "(Garbled, Invalid, Missing)",
    ),
    Named(
        "a watch is opened again without a pause",
        "operator/hedgerow/kube/watch.py",
        "(None, None if routine else error, backoff(failures, draw, error.after))",
        "(None, None if routine else error, 0.0)",
    ),
    Named(
        "a watch that is silent is waited for",
        "operator/hedgerow/kube/session.py",
        "watch = login.exchange(request, read=idle)",
        "watch = login.exchange(request, read=1e9)",
    ),
    Named(
        "what a list does not have stays in the cache",
        "operator/hedgerow/runtime/cache/store.py",
        "entry.version > number or any(",
        "entry.version > 0 or any(",
    ),
    Named(
        "answers to writes are not taken in",
        "operator/hedgerow/runtime/cache/store.py",
        "if version_of(obj) > self.version:",
        "if version_of(obj) < 0:",
    ),
    Named(
        "a lease is taken from who holds it",
        "operator/hedgerow/process/leaderelection/record.py",
        "self._free_from = now if vacant else self._expires",
        "self._free_from = now",
    ),
    Named(
        "a deletion is of whatever has the name",
        "operator/hedgerow/runtime/passes/applier.py",
        "uid=ref.uid, version=deletion.version",
        'uid="", version=deletion.version',
    ),
    Named(
        "what is gone asks for no pass",
        "operator/hedgerow/runtime/watches.py",
        "for obj in filter(None, chain.from_iterable(changes)):",
        "for obj in filter(None, chain.from_iterable(change[1:] for change in changes)):",
    ),
    Named(
        "a pass that the server did not answer is not made again",
        "operator/hedgerow/runtime/runner.py",
        "delay = self.queue.retry(key, least=error.after)",
        "delay = error.after",
    ),
    Named(
        "a status tells of an earlier generation",
        "operator/hedgerow/plan/status.py",
        '"observed_generation": generation,',
        '"observed_generation": max(generation - 1, 1),',
    ),
    Named(
        "fields are taken by force",
        "operator/hedgerow/runtime/passes/applier.py",
        "force=bool(write.claims)",
        "force=not write.create",
    ),
)
