"""Which pods are a Deployment's, when it counts as available, and how a pod is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.workloads import LONGEST_REASON, LONGEST_WORDS, answers, replicas_of, waits_for
from hedgerow_schemas.builtin import Deployment, Pod

Object = dict[str, Any]


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
    Case("ahead of what we know is not behind it", {"observedGeneration": 4}, ""),
    Case("the newest template is not seen yet", {"observedGeneration": 2},
         "its controller has not seen the newest generation yet"),
    Case("nothing wanted", {"replicas": 0, "there": 0}, "it is scaled to zero"),
    Case("rollout under way", {"updatedReplicas": 1}, "1 of 2 replicas are up to date"),
    Case("old pods besides the new ones", {"there": 3}, "1 surplus replicas are still there"),
    Case("an old pod more while the new ones come", {"there": 3, "updatedReplicas": 1},
         "1 of 2 replicas are up to date"),
    Case("scaled down, pods still going", {"replicas": 1}, "1 surplus replicas are still there"),
    Case("scaled up, pods not made yet", {"replicas": 3}, "2 of 3 replicas are up to date"),
    Case("pods that never became ready", {"availableReplicas": 0}, "0 of 2 replicas are available"),
    Case("pods that regressed", {"availableReplicas": 1}, "1 of 2 replicas are available"),
    Case("the controller says no", {"available": "False"},
         "its status has no condition Available=True"),
    Case("the controller does not know", {"available": "Unknown"},
         "its status has no condition Available=True"),
    Case("available, but going", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
         "it is being deleted"),
]  # fmt: skip


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
            ({**dict.fromkeys(REPLICAS, 0), "there": 1}, "1 surplus replicas are still there"),
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


def said(kind: str, status: str, reason: str, message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def refused(why: str, name: str = "web-5f-x2k4m") -> Object:
    return said("ReplicaFailure", "True", "FailedCreate", f'pods "{name}" is forbidden: {why}')


def unscheduled(message: str, reason: str = "Unschedulable") -> Object:
    return {"phase": "Pending", "conditions": [said("PodScheduled", "False", reason, message)]}


def unready(reason: str, message: str = "") -> Object:
    return {"phase": "Running", "conditions": [said("Ready", "False", reason, message)]}


def waits(reason: str) -> Object:
    states = [{"state": {"waiting": {"reason": reason}}}]
    return {"phase": "Pending", "containerStatuses": states}


POD_SECURITY = (
    'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "web"'
    " must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities"
    ' (container "web" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true'
    ' (pod or container "web" must set securityContext.runAsNonRoot=true), seccompProfile (pod or'
    ' container "web" must set securityContext.seccompProfile.type to "RuntimeDefault" or'
    ' "Localhost")'
)
QUOTA = "exceeded quota: compute, requested: pods=1, {}limited: pods=2"
NO_PORTS = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
GATE = 'corresponding condition of pod readiness gate "a.b/c" does not exist.'
DEADLINE = "its rollout has made no progress for spec.progressDeadlineSeconds"
PAUSE = "it is paused (`kubectl rollout resume deployment/web -n ns` ends that)"
OVERDUE = said("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "web-5f" timed out')


@dataclass(frozen=True)
class Why:
    """What a Deployment of 2 pods, of which 1 is there, or one of its pods says of it.

    `lasting` is what is left of it in `Stalled`; if nothing is, the lack alone.
    """

    reason: str
    says: str
    conditions: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    spec: Object = field(default_factory=dict)
    lasting: str = ""


FORBIDDEN = 'pods "…" is forbidden'
WHYS = [
    Why("nobody says", ""),
    Why("a quota", f": {FORBIDDEN}: {QUOTA.format('used: pods=2, ')}",
        (refused(QUOTA.format("used: pods=2, ")),), lasting=f"{FORBIDDEN}: {QUOTA.format('')}"),
    Why("PodSecurity", f": {FORBIDDEN}: {POD_SECURITY}", (refused(POD_SECURITY),),
        lasting=f"{FORBIDDEN}: {POD_SECURITY}"),
    *(
        Why(reason, f": {FORBIDDEN}: {text}", (refused(text),), lasting=f"{FORBIDDEN}: {text}")
        for reason, text in (
            ("a LimitRange", "maximum memory usage per Pod is 1Gi, but limit is 2Gi"),
            ("a PriorityClass", "no PriorityClass with name none was found"),
            ("a ServiceAccount", 'error looking up service account ns/a: serviceaccount "a" not'),
            ("a namespace that goes", "unable to create new content in namespace ns"),
        )
    ),
    Why("a pod that the server does not take", ': Pod "…" is invalid: spec.tolerations: Forbidden',
        (said("ReplicaFailure", "True", "X",
              'Pod "web-5f-1" is invalid: spec.tolerations: Forbidden'),),
        lasting='Pod "…" is invalid: spec.tolerations: Forbidden'),
    Why("a webhook", ': admission webhook "a.b" denied the request: no',
        (said("ReplicaFailure", "True", "X", 'admission webhook "a.b" denied the request: no'),),
        lasting='admission webhook "a.b" denied the request: no'),
    Why("a webhook that names the pod",
        ": resource Pod/ns/web-… was blocked, web-proxy-small was not",
        (said("ReplicaFailure", "True", "X",
              "resource Pod/ns/web-6d4cf56db6-4kgnf was blocked, web-proxy-small was not"),),
        lasting="resource Pod/ns/web-… was blocked, web-proxy-small was not"),
    Why("a failure without a text", ": FailedDelete",
        (said("ReplicaFailure", "True", "FailedDelete"),), lasting="FailedDelete"),
    Why("a failure that is over", "", (said("ReplicaFailure", "False", "X", "was"),)),
    Why("no ReplicaSet", ': Failed to create new replica set "web-5f": no',
        (said("Progressing", "False", "ReplicaSetCreateError",
              'Failed to create new replica set "web-5f": no'),),
        lasting='Failed to create new replica set "web-5f": no'),
    Why("the deadline", f": {DEADLINE}", (OVERDUE,), lasting=DEADLINE),
    Why("the deadline, for a reason", f": {DEADLINE}: {FORBIDDEN}: no", (OVERDUE, refused("no")),
        lasting=f"{DEADLINE}: {FORBIDDEN}: no"),
    Why("paused", f": {PAUSE}", spec={"paused": True}, lasting=PAUSE),
    Why("goes on", "", (said("Progressing", "True", "ReplicaSetUpdated", "is progressing"),)),
    Why("no free port", f", pod web-5f-0: {NO_PORTS}", pods=(unscheduled(NO_PORTS),)),
    Why("no text", ", pod web-5f-0: Unschedulable", pods=(unscheduled(""),)),
    Why("a scheduling gate", ", pod web-5f-0: Scheduling is blocked",
        pods=(unscheduled("Scheduling is blocked", "SchedulingGated"),)),
    *(
        Why(reason, f", pod web-5f-0: {reason}", pods=(waits(reason),))
        for reason in (
            "ContainerCreating",
            "PodInitializing",
            "ErrImagePull",
            "ImagePullBackOff",
            "InvalidImageName",
            "CrashLoopBackOff",
            "CreateContainerConfigError",
        )
    ),
    Why("a readiness gate", f", pod web-5f-0: {GATE}",
        pods=(unready("ReadinessGatesNotReady", GATE),)),
    Why("a probe", ", pod web-5f-0: containers with unready status: [web]",
        pods=(unready("ContainersNotReady", "containers with unready status: [web]"),)),
    Why("not ready, without a text", ", pod web-5f-0: NotReady", pods=(unready("NotReady"),)),
    Why("the first by name", ", pod web-5f-0: A", pods=(waits("A"), waits("B"))),
    Why("what has ended does not count", ", pod web-5f-1: B",
        pods=({**unready("PodFailed"), "phase": "Failed"}, waits("B"))),
    Why("both", f": {FORBIDDEN}: no, pod web-5f-0: {NO_PORTS}", (refused("no"),),
        (unscheduled(NO_PORTS),), lasting=f"{FORBIDDEN}: no"),
]  # fmt: skip


def one_of_two(case: Why) -> tuple[Deployment, list[Pod]]:
    made = rolled_out(updatedReplicas=1, availableReplicas=1, there=1)
    made["metadata"] |= {"name": "web", "namespace": "ns"}
    made["spec"] |= case.spec
    made["status"]["conditions"] += case.conditions
    pods = (Pod({**pod(f"web-5f-{n}").raw, "status": one}) for n, one in enumerate(case.pods))
    return Deployment(made), [Pod(Pod.reduced(one.raw)) for one in pods]


class TestWhyPodsAreMissing:
    LACK = "1 of 2 replicas are up to date"

    @pytest.mark.parametrize("case", WHYS, ids=lambda case: case.reason)
    def test_it_is_what_the_deployment_and_its_pods_say(self, case):
        deployment, pods = one_of_two(case)

        assert waits_for(deployment, pods) == self.LACK + case.says
        lasting = waits_for(deployment, lasting=True)
        assert lasting == (case.lasting or self.LACK)

    @pytest.mark.parametrize("case", WHYS, ids=lambda case: case.reason)
    def test_of_a_newer_generation_nothing_is_known(self, case):
        deployment, pods = one_of_two(case)
        deployment.raw["metadata"]["generation"] = 4

        assert (
            waits_for(deployment, pods) == "its controller has not seen the newest generation yet"
        )

    @pytest.mark.parametrize("case", WHYS, ids=lambda case: case.reason)
    def test_what_is_available_waits_for_nothing(self, case):
        deployment, pods = one_of_two(case)
        deployment.raw["status"] |= rolled_out()["status"] | {
            "conditions": deployment.raw["status"]["conditions"]
        }

        assert waits_for(deployment, pods) == ""

    @pytest.mark.parametrize(
        "case", [case for case in WHYS if case.conditions], ids=lambda case: case.reason
    )
    def test_what_lasts_is_the_same_for_every_pod_and_number(self, case):
        told = set[str]()
        for number in (1, 5):
            deployment, _ = one_of_two(case)
            deployment.raw["spec"]["replicas"] = 9
            deployment.raw["status"]["updatedReplicas"] = number
            for one in deployment.raw["status"]["conditions"]:
                text = one.get("message", "").replace("web-5f-x2k4m", f"web-5f-{number}")
                one["message"] = text.replace("used: pods=2", f"used: pods={number}")
            told.add(waits_for(deployment, lasting=True).replace(f"{number} of 9", ""))

        assert len(told) == 1

    @pytest.mark.parametrize(
        ("conditions", "pods"),
        [
            ((said("ReplicaFailure", "True", "X", "\x1b[2Jé\n" * 9_000),), ()),
            ((), (unscheduled("\x1b[2Jé\n" * 9_000),)),
            ((), (unready("X", "\x1b[2Jé\n" * 9_000),)),
            ((), (waits("\x1b[2Jé\n" * 9_000),)),
        ],
        ids=["a Deployment", "not scheduled", "not ready", "a container"],
    )
    def test_what_others_write_is_escaped_and_cut(self, conditions, pods):
        told = waits_for(*one_of_two(Why("", "", conditions, pods)))

        assert told.startswith(f"{self.LACK}: " if conditions else f"{self.LACK}, pod web-5f-0: ")
        assert told.isprintable()
        assert len(told) <= len(f"{self.LACK}, ") + LONGEST_REASON

    def test_all_of_it_leaves_room_for_what_a_resource_adds(self):
        both = (said("ReplicaFailure", "True", "X", "a" * 9_000),), (unscheduled("b" * 9_000),)

        assert len(waits_for(*one_of_two(Why("", "", *both)))) == LONGEST_WORDS

    @pytest.mark.parametrize("odd", ["odd", 7, {"type": "ReplicaFailure", "status": "True"}])
    def test_what_cannot_be_read_says_nothing(self, odd):
        deployment, pods = one_of_two(Why("", "", (odd,), ({"conditions": [odd]},)))

        assert waits_for(deployment, pods) == self.LACK


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
