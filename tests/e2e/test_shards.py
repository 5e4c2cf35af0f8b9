"""Shards: replicas that share the work in a real Deployment, replaced and scaled under load.

Whether a namespace was served by one replica at a time is judged by the API server's audit log.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import pytest

from e2e import chores
from e2e.autoscaling import BUSY, IDLE, documented, metrics
from e2e.deployment import ACCOUNT, NAME, NAMESPACE, Deployment
from e2e.flips import PLACES, Flips, twice, waits
from e2e.node.node import Node
from e2e.pods import must_restart
from e2e.rights import ANYBODY, allowed, refused
from e2e.sharing import Sharing
from hedgerow.deploy.rights import of_installation
from hedgerow.testing.api import Api
from hedgerow.testing.audit_log import AuditEntry
from hedgerow.testing.waiting import eventually
from support.cluster.granted import requests, used
from support.cluster.writers import Writers

pytestmark = [pytest.mark.e2e, pytest.mark.apart, pytest.mark.timeout(900)]

LEASE, SHORT = 15.0, 6.0
ALONE, SHARED = "alone", "shared"
SETTINGS = {
    "HEDGEROW_LEASE_DURATION": f"{SHORT:.0f}s",
    "HEDGEROW_RENEW_DEADLINE": "4s",
    "HEDGEROW_RETRY_PERIOD": "1s",
}


@pytest.fixture(scope="module", autouse=True)
def places(one_node: Node, one_api: Api) -> Iterator[None]:
    """The namespaces of the load go with the last test."""
    yield
    with one_node.network():
        for place in PLACES:
            one_api.raw("DELETE", f"/api/v1/namespaces/{place}")


@contextmanager
def sharing(usual: Deployment, **settings: str) -> Generator[Sharing]:
    with usual.node.network(), Sharing.of(usual, **settings) as found:
        yield found


@pytest.fixture(scope="class")
def short(one_deployment: Deployment) -> Iterator[Sharing]:
    """Three replicas whose Leases last for six seconds."""
    with sharing(one_deployment, **SETTINGS) as found:
        yield found


@pytest.fixture(scope="class")
def shared(one_deployment: Deployment) -> Iterator[Sharing]:
    """Three replicas by the manifests as they are."""
    with sharing(one_deployment) as found:
        yield found


class Judged:
    """What the audit log tells of replicas and of the namespaces that they served."""

    def __init__(self, shared: Sharing, flips: Flips) -> None:
        entries = shared.deployment.node.audit.since(shared.mark, user=ACCOUNT)
        self.ours = [entry for entry in entries if is_divided(entry)]
        self.wrote = Writers.of(self.ours)
        self.waits, self.refused = waits(flips.changes, self.ours), flips.answers.failed

    def must_be_well(self, lease: float) -> None:
        """No two wrote for a namespace at once, and nothing was written twice."""
        moves = sorted(len(self.wrote.turns(place)) - 1 for place in PLACES)
        print(f"moves of a namespace: {moves}; not served for {self.longest:.2f} s at most")
        print(f"{len(self.refused)} changes refused: {self.refused[:1]}")

        assert self.wrote.broken(lease) == []
        assert twice(self.ours) == []

    @property
    def longest(self) -> float:
        """For how many seconds at most a change waited: a namespace was not served."""
        return max(self.waits.values())

    @property
    def moves(self) -> float:
        """How often a namespace changed hands on average."""
        return sum(len(self.wrote.turns(place)) - 1 for place in PLACES) / len(PLACES)

    def left(self) -> set[str]:
        """Return the replicas that said in the end that they serve nothing any more."""
        return {
            entry["objectRef"]["name"]
            for entry in self.ours
            if entry["objectRef"]["resource"] == "leases"
            and entry["verb"] == "patch"
            and not entry["requestObject"]["spec"].get("holderIdentity")
        }


class Written(NamedTuple):
    """A write of the operator that was answered, and in which way it served the namespace."""

    began: str
    ended: str
    place: str
    way: str


def writes(shared: Sharing) -> list[Written]:
    """Return what was written in the places of the load so far."""
    return [
        Written(
            entry["requestReceivedTimestamp"],
            entry["stageTimestamp"],
            entry["objectRef"]["namespace"],
            SHARED if Writers.of([entry]).places else ALONE,
        )
        for entry in sorted(
            shared.deployment.node.audit.since(shared.mark, user=ACCOUNT),
            key=itemgetter("requestReceivedTimestamp"),
        )
        if entry["verb"] in ("patch", "delete")
        if entry["objectRef"].get("namespace") in PLACES
    ]


def ways(written: Iterable[Written]) -> tuple[str, ...]:
    """Return in which ways a place was served, one after the other; no two at once."""
    last = dict.fromkeys((ALONE, SHARED), "")
    found: list[str] = []
    for each in written:
        other = SHARED if each.way == ALONE else ALONE
        assert last[other] <= each.began, f"two at once: {each}"
        last[each.way] = max(last[each.way], each.ended)
        found.append(each.way)
    return tuple(way for way, _ in groupby(found))


def is_divided(entry: AuditEntry) -> bool:
    """Return whether a request is about a namespace of the load, or about a Lease."""
    about: AuditEntry = entry.get("objectRef") or {}
    return about.get("resource") == "leases" or about.get("namespace") in PLACES


class TestRollingUpdate:
    def test_replicas_hand_over_and_nothing_is_written_twice(
        self, short: Sharing, node: Node, api: Api
    ):
        before = {each.name for each in short.shared_by(3)}
        with Flips(node, api) as flips:
            flips.go_on()
            node.kubectl("rollout", "restart", "-n", NAMESPACE, f"deployment/{NAME}")
            short.replaced(before)
            after = {each.name for each in short.shared_by(3)}
            flips.go_on()
        flips.carried_out()

        judged = Judged(short, flips)
        judged.must_be_well(SHORT)
        assert not judged.refused
        assert len(judged.wrote.renewals.keys() - judged.left()) == len(after)
        assert 1 <= judged.moves <= 2

    def test_each_right_on_what_is_its_own_is_used_and_none_is_refused(
        self, short: Sharing, node: Node, api: Api
    ):
        short.shared_by(3)
        here, elsewhere = (allowed(api, ACCOUNT, place) for place in (NAMESPACE, "default"))
        asked = requests(node.audit, short.mark, ACCOUNT)

        assert here - elsewhere == of_installation(NAME, shards=True)
        assert sorted((here - elsewhere) - used(asked, here)) == []
        assert refused(asked) == []


class TestTurnedOnAndOff:
    def test_a_running_deployment_is_replaced_and_no_two_write_at_once(
        self, one_deployment: Deployment, node: Node, api: Api
    ):
        usual = one_deployment
        with node.network():
            usual.leader()
            shared = Sharing(usual, node.audit.mark())
            with Flips(node, api) as flips:
                flips.go_on()
                try:
                    shared.apply()
                    shared.shared_by(3)
                    flips.go_on()
                finally:
                    Deployment.of(node, api)
                usual.leader()
                # It waits until nobody may share the work any more; so do the last changes.
                eventually(lambda: writes(shared)[-1].way == ALONE, 3 * LEASE, "one alone")
                flips.go_on()
            flips.carried_out()

        judged = Judged(shared, flips)
        judged.must_be_well(LEASE)
        assert judged.longest < 3 * LEASE
        by_place = {place: [w for w in writes(shared) if w.place == place] for place in PLACES}
        assert {ways(written) for written in by_place.values()} == {(ALONE, SHARED, ALONE)}


class TestAutoscaler:
    """The one of kube-controller-manager, with that of the guide; figures of CPU are made up."""

    def test_it_scales_from_two_to_five_and_back(self, shared: Sharing, node: Node, api: Api):
        autoscaler = documented()
        autoscaler["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
        shared.shared_by(3)
        with metrics(node, api) as load, Flips(node, api) as flips:
            api.apply(autoscaler, "test").must()
            try:
                for cpu, replicas in ((IDLE, 2), (BUSY, 5), (IDLE, 2)):
                    load.cpu = cpu
                    shared.shared_by(replicas)
                    flips.go_on()
            finally:
                api.delete(autoscaler)
        flips.carried_out()

        judged = Judged(shared, flips)
        judged.must_be_well(LEASE)
        assert not judged.refused
        assert judged.longest < LEASE
        assert len(judged.wrote.renewals.keys() - judged.left()) == 2

    def test_what_a_killed_one_served_is_served_again(self, shared: Sharing, node: Node, api: Api):
        number, pod = len(shared.deployment.pods()), shared.deployment.leader()
        with Flips(node, api) as flips:
            flips.go_on()
            shared.deployment.process(pod).kill()
            must_restart(api, pod)
            shared.shared_by(number)
            flips.go_on()
        flips.carried_out()

        judged = Judged(shared, flips)
        judged.must_be_well(LEASE)
        assert judged.longest < LEASE + 2

    def test_each_right_is_used_and_none_is_refused(
        self, shared: Sharing, node: Node, api: Api, namespace: str
    ):
        chores.done(node, api, namespace)
        may = allowed(api, ACCOUNT, NAMESPACE) - allowed(api, ANYBODY, NAMESPACE)
        asked = requests(node.audit, shared.mark, ACCOUNT)

        assert sorted(may - used(asked, may)) == []
        assert refused(asked) == []
