"""Which pods are a Deployment's, when it counts as available, and how a pod is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.workloads import answers, replicas_of, waits_for
from hedgerow_schemas.builtin import Deployment, Pod


def rolled_out(**change: Any) -> dict[str, Any]:
    """A Deployment that is available in every respect, but for `change`."""
    numbers = {"generation": 3, "replicas": 2, "observedGeneration": 3, "there": 2} | change
    counts = {"updatedReplicas": 2, "availableReplicas": 2} | change
    return {
        "metadata": {"generation": numbers["generation"], **change.get("metadata", {})},
        "spec": {"replicas": numbers["replicas"]},
        "status": {
            "observedGeneration": numbers["observedGeneration"],
            "replicas": numbers["there"],
            "updatedReplicas": counts["updatedReplicas"],
            "availableReplicas": counts["availableReplicas"],
            "conditions": [{"type": "Available", "status": change.get("available", "True")}],
        },
    }


@dataclass(frozen=True)
class Case:
    reason: str
    change: dict[str, Any]
    says: str


CASES = [
    Case("all as wanted", {}, ""),
    Case(
        "ahead of what we know is not behind it",
        {"observedGeneration": 4},
        "",
    ),
    Case(
        "the newest template is not seen yet",
        {"observedGeneration": 2},
        "its controller has not seen the newest generation yet",
    ),
    Case("nothing wanted", {"replicas": 0, "there": 0}, "it is scaled to zero"),
    Case("rollout under way", {"updatedReplicas": 1}, "1 of 2 replicas are up to date"),
    Case(
        "old pods besides the new ones",
        {"there": 3},
        "2 of 3 replicas are up to date",
    ),
    Case(
        "scaled down, pods still going",
        {"replicas": 1},
        "1 surplus replicas are still there",
    ),
    Case(
        "scaled up, pods not made yet",
        {"replicas": 3},
        "2 of 3 replicas are up to date",
    ),
    Case("pods that never became ready", {"availableReplicas": 0}, "0 of 2 replicas are available"),
    Case("pods that regressed", {"availableReplicas": 1}, "1 of 2 replicas are available"),
    Case(
        "the controller says no",
        {"available": "False"},
        "its status has no condition Available=True",
    ),
    Case(
        "the controller does not know",
        {"available": "Unknown"},
        "its status has no condition Available=True",
    ),
    Case(
        "available, but going",
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        "it is being deleted",
    ),
]


REPLICAS = ("replicas", "there", "updatedReplicas", "availableReplicas")


class TestWaitsFor:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
    def test_available_means_every_replica_of_the_newest_generation(self, case):
        assert waits_for(Deployment(rolled_out(**case.change))) == case.says

    def test_a_deployment_that_is_not_there_is_waited_for(self):
        assert waits_for(None) == "it has no Deployment of its own yet"

    def test_what_it_lacks_is_the_same_whatever_its_generation(self):
        """A field that changes all the time would otherwise be a status write each time."""
        lacks = {waits_for(Deployment({"metadata": {"generation": n}})) for n in range(1, 9)}

        assert len(lacks) == 1

    def test_a_deployment_without_any_status_is_waited_for(self):
        made = {"metadata": {"generation": 1}, "spec": {"replicas": 1}}

        assert (
            waits_for(Deployment(made)) == "its controller has not seen the newest generation yet"
        )

    @given(
        st.fixed_dictionaries(
            {name: st.integers(0, 4) for name in ("generation", "observedGeneration", *REPLICAS)}
        ),
        st.sampled_from(["True", "False", "Unknown"]),
    )
    def test_it_is_never_available_with_a_replica_missing_old_or_unseen(self, numbers, says):
        replicas = {numbers[name] for name in REPLICAS}
        seen = numbers["observedGeneration"] >= numbers["generation"]
        all_is_well = seen and len(replicas) == 1 and min(replicas) >= 1

        waits = waits_for(Deployment(rolled_out(**numbers, available=says)))

        assert (waits == "") == (all_is_well and says == "True")

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (dict.fromkeys(REPLICAS, 0), ""),
            ({**dict.fromkeys(REPLICAS, 0), "there": 1}, "0 of 1 replicas are up to date"),
            (
                {**dict.fromkeys(REPLICAS, 0), "available": "False"},
                "its status has no condition Available=True",
            ),
            ({"availableReplicas": 1}, "1 of 2 replicas are available"),
        ],
        ids=["none", "one is still going", "it says no", "another number"],
    )
    def test_where_it_may_be_zero_none_is_enough(self, change, says):
        assert waits_for(Deployment(rolled_out(**change)), may_be_zero=True) == says


def pod(name: str, owner: str = "web-5f", app: str = "web", **more: Any) -> Pod:
    owners = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    labels = {"app": app, "pod-template-hash": "5f"}
    return Pod(
        {
            "metadata": {"name": name, "labels": labels, "ownerReferences": owners, **more},
            "status": {"phase": "Running"},
        }
    )


class TestReplicasOf:
    @pytest.mark.parametrize(
        "spared",
        [
            pod("x", owner="other-5f"),
            pod("x", app="other"),
            pod("x", deletionTimestamp="2026-01-01T00:00:00Z"),
            Pod({**pod("x").raw, "status": {"phase": "Failed"}}),
        ],
        ids=["another owner", "other labels", "going", "ended"],
    )
    def test_they_are_the_running_pods_of_that_selector_and_owner_by_name(self, spared):
        pods = [pod("b"), spared, pod("a")]

        found = replicas_of("web", {"matchLabels": {"app": "web"}}, pods)

        assert [one.name for one in found] == ["a", "b"]


def test_it_asks_for_a_connection_at_the_given_pace():
    assert answers(80, every=5, failures=2) == {
        "tcpSocket": {"port": 80},
        "periodSeconds": 5,
        "failureThreshold": 2,
    }
