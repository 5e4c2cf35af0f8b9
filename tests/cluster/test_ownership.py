"""Ownership on the real server: an unforced apply is the judge of `judge`."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hedgerow.fields.ownership import Verdict, judge, leave_out, residual
from hedgerow_testing.api import Api, Reply
from support.cluster.facts import visible
from support.objects.cases import Case, Field, Object
from support.objects.edits import at, having, only, reversed_lists
from support.objects.hedge import HEDGE
from support.objects.manifests import CASES, CONFIG_MAP, SERVICE

pytestmark = pytest.mark.cluster

OURS = "hedgerow-test"
OTHER = "other"
RUN = secrets.token_hex(3)
UNDRAWN = [case for case in CASES if case not in (SERVICE, CONFIG_MAP)]
"""tests/fields/test_ownership_on_model.py draws far more of the kinds that the model has."""
Write = Callable[[Api, Object, Field], list[Reply]]


@dataclass
class Tally:
    """What the checks found; every entry names the check."""

    checks: int = 0
    refused: list[str] = field(default_factory=list)
    dangerous: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    needless_with_recall: list[str] = field(default_factory=list)
    other_paths: list[str] = field(default_factory=list)
    still_refused: list[str] = field(default_factory=list)
    conflicts: int = 0

    def __str__(self) -> str:
        return ", ".join(
            f"{k} {v if isinstance(v, int) else len(v)}" for k, v in vars(self).items()
        )


# --- what another manager may do to a field ---------------------------------------------------


def change(api: Api, live: Object, changed: Field) -> list[Reply]:
    return [api.put(having(live, changed.path, changed.other), OTHER)]


def removal(api: Api, live: Object, changed: Field) -> list[Reply]:
    return [api.put(having(live, changed.path, None), OTHER)]


def forced_apply(api: Api, live: Object, changed: Field) -> list[Reply]:
    return [api.apply(only(live, changed.path, changed.other), OTHER, force=True)]


def equal_apply(api: Api, live: Object, changed: Field) -> list[Reply]:
    return [api.apply(only(live, changed.path, at(live, changed.path)), OTHER)]


def equal_apply_then_change(api: Api, live: Object, changed: Field) -> list[Reply]:
    first = equal_apply(api, live, changed)
    return first + [change(api, first[-1].body, changed)[0] for _ in first if first[-1].ok]


def equal_apply_then_release(api: Api, live: Object, changed: Field) -> list[Reply]:
    return [*equal_apply(api, live, changed), _release(api, live)]


def forced_apply_then_release(api: Api, live: Object, changed: Field) -> list[Reply]:
    return [*forced_apply(api, live, changed), _release(api, live)]


def change_and_back(api: Api, live: Object, changed: Field) -> list[Reply]:
    first = api.put(having(live, changed.path, changed.other), OTHER)
    if not first.ok:
        return [first]
    return [first, api.put(having(first.body, changed.path, at(live, changed.path)), OTHER)]


def change_by_two(api: Api, live: Object, changed: Field) -> list[Reply]:
    first = api.apply(only(live, changed.path, changed.other), OTHER, force=True)
    return [first, api.apply(only(live, changed.path, changed.other), "third")]


def our_name_by_update(api: Api, live: Object, changed: Field) -> list[Reply]:
    return [api.put(having(live, changed.path, changed.other), OURS)]


def parent_removed(api: Api, live: Object, changed: Field) -> list[Reply]:
    parent = tuple(itertools.takewhile(lambda step: isinstance(step, str), changed.path[:-1]))
    if len(parent) < 2:
        return []
    return [api.put(having(live, parent, None), OTHER)]


def lists_reversed(api: Api, live: Object, _changed: Field) -> list[Reply]:
    return [api.put(reversed_lists(live), OTHER)]


def list_item_removed(api: Api, live: Object, changed: Field) -> list[Reply]:
    for index, step in enumerate(changed.path):
        if isinstance(step, dict):
            items = [
                i
                for i in at(live, changed.path[:index])
                if i != at(live, changed.path[: index + 1])
            ]
            return [api.put(having(live, changed.path[:index], items or None), OTHER)]
    return []


def unrelated_labels(api: Api, live: Object, _changed: Field) -> list[Reply]:
    return [api.merge(live, {"metadata": {"labels": {"unrelated": "yes"}}}, OTHER)]


def unrelated_finalizer(api: Api, live: Object, _changed: Field) -> list[Reply]:
    return [api.apply(only(live, ("metadata", "finalizers"), ["other.example/keep"]), OTHER)]


def all_labels_removed(api: Api, live: Object, _changed: Field) -> list[Reply]:
    return [api.merge(live, {"metadata": {"labels": None}}, OTHER)]


def tracking_reset(api: Api, live: Object, _changed: Field) -> list[Reply]:
    return [api.merge(live, {"metadata": {"managedFields": [{}]}}, OTHER)]


def reset_and_change(api: Api, live: Object, changed: Field) -> list[Reply]:
    first = tracking_reset(api, live, changed)[0]
    return [first, api.put(having(first.body, changed.path, changed.other), OTHER)]


def status(api: Api, live: Object, _changed: Field) -> list[Reply]:
    if live["kind"] != "Deployment":
        return []
    patch = {"status": {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3}}
    return [api.merge(live, patch, "kube-controller-manager", "status")]


def scale(api: Api, live: Object, _changed: Field) -> list[Reply]:
    if live["kind"] != "Deployment":
        return []
    patched = api.merge(live, {"spec": {"replicas": 7}}, "scaler", "scale")
    return [patched] if not patched.ok else [api.get(live)]


def nothing(_api: Api, live: Object, _changed: Field) -> list[Reply]:
    return [Reply(200, live)]


def _release(api: Api, live: Object) -> Reply:
    metadata = {k: live["metadata"][k] for k in ("name", "namespace") if k in live["metadata"]}
    identity = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
    return api.apply(identity, OTHER)


TO_A_FIELD: tuple[Write, ...] = (
    change, removal, forced_apply, equal_apply, equal_apply_then_change, equal_apply_then_release,
    forced_apply_then_release, change_and_back, change_by_two, our_name_by_update, parent_removed,
    list_item_removed, reset_and_change,
)  # fmt: skip
TO_ANY: tuple[Write, ...] = (
    nothing, lists_reversed, unrelated_labels, unrelated_finalizer, all_labels_removed,
    tracking_reset, status, scale,
)  # fmt: skip
"""Whichever field it is about, these are the same write: once for a case is enough."""


# --- the checks -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def api(sandbox: Any) -> Iterator[Api]:
    connection = Api(sandbox.kubeconfig)
    connection.apply(HEDGE, "test").must()
    connection.namespace("ownership")
    connection.served("test.hedgerow.example/v1")
    yield connection
    connection.close()


class Check:
    """One object: our apply, a foreign write, the verdict, and what an unforced apply says."""

    def __init__(self, api: Api, tally: Tally, title: str) -> None:
        self.api, self.tally, self.title = api, tally, title

    def run(self, want: Object, write: Write, changed: Field, edited: Object | None = None) -> None:
        answer = self.api.apply(want, OURS).must()
        replies = write(self.api, answer, changed)
        if not replies or not all(reply.ok for reply in replies):
            self.tally.refused.append(self.title)
            return
        live = replies[-1].body
        declared = edited or want
        verdict = judge(declared, live, OURS)
        recalled = edited is None and residual(verdict) == residual(judge(want, answer, OURS))
        self.compare(verdict, recalled, live, self.api.apply(declared, OURS))
        if verdict.contested and verdict.tracked:
            self.leave_out(leave_out(declared, verdict.contested))

    def leave_out(self, rest: Object) -> None:
        """The rest must be taken, and a further apply of it change nothing."""
        first = self.api.apply(rest, OURS)
        again = self.api.apply(rest, OURS)
        if first.status == 409 or (first.ok and visible(first.body) != visible(again.body)):
            self.tally.still_refused.append(f"{self.title}: {first.conflicts or again.body}")

    def compare(self, verdict: Verdict, recalled: bool, live: Object, truth: Reply) -> None:
        tally = self.tally
        tally.checks += 1
        rest = truth.ok and visible(truth.body) == visible(live)
        said = verdict.settled or recalled
        if said and not rest:
            tally.dangerous.append(f"{self.title}: {truth.conflicts or truth.status}")
        if rest and not verdict.settled:
            tally.needless.append(f"{self.title}: {[leaf.path for leaf in verdict.leaves]}")
        if rest and not said:
            tally.needless_with_recall.append(tally.needless[-1])
        paths = sorted({leaf.path for leaf in verdict.contested})
        if truth.status == 409:
            tally.conflicts += 1
        # Where nothing is tracked, nobody's entry tells list keys and atomic maps: no exact paths.
        is_exact = paths == truth.conflicts or not verdict.tracked
        if (truth.status == 409 or (truth.ok and paths)) and not is_exact:
            tally.other_paths.append(f"{self.title}: {paths} is not {truth.conflicts}")


def _objects(case: Case) -> Iterator[Object]:
    slug = str(case).replace(" ", "-")
    return (case.named(f"{slug}-{RUN}-{number}", "ownership") for number in itertools.count())


@pytest.mark.parametrize("case", UNDRAWN, ids=str)
def test_an_unforced_apply_agrees_with_the_verdict(api: Api, case: Case) -> None:
    """Fact: what an unforced apply meets on a real server after each foreign write."""
    tally, objects = Tally(), _objects(case)
    of_fields = itertools.product(case.fields, TO_A_FIELD)
    for changed, write in (*of_fields, *itertools.product(case.fields[:1], TO_ANY)):
        title = f"{case} {changed.path[-1]} {write.__name__}"
        Check(api, tally, title).run(next(objects), write, changed)
    print(f"\n{case}: {tally}")

    assert [] == tally.dangerous
    assert [] == tally.needless_with_recall
    assert [] == tally.other_paths
    assert [] == tally.still_refused


@pytest.mark.parametrize("case", UNDRAWN[1:], ids=str)
def test_an_unforced_apply_agrees_after_our_own_declaration_changed(api: Api, case: Case) -> None:
    """Fact: the same after our declaration has changed."""
    tally, objects = Tally(), _objects(Case(f"{case} edited", case.manifest))
    for changed in case.fields:
        for write in (nothing, equal_apply, change, forced_apply):
            for value in (changed.other, None):
                want = next(objects)
                title = f"{case} {changed.path[-1]} {write.__name__} edited to {value}"
                edited = having(want, changed.path, value)
                Check(api, tally, title).run(want, write, changed, edited)
    print(f"\n{case}: {tally}")

    assert [] == tally.dangerous
    assert [] == tally.other_paths
    assert [] == tally.still_refused
