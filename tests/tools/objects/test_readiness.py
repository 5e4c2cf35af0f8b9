"""Readiness: the words that kubectl's users know, for every kind that hedgerow makes."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from hedgerow_tools.objects.readiness import Readiness, readiness

Object = dict[str, Any]


class Case(NamedTuple):
    name: str
    kind: str
    body: Object
    verdict: str
    words: str


def cond(kind: str, status: str = "True", reason: str = "Because", says: str = "") -> Object:
    told = {"type": kind, "status": status, "reason": reason}
    return told | ({"message": says} if says else {})


def status(*conditions: Object, **fields: Any) -> Object:
    return {"status": {**fields, "conditions": list(conditions)}}


def scaled(wanted: int, *conditions: Object, paused: bool = False, **fields: int) -> Object:
    counts = {
        "replicas": wanted, "updatedReplicas": wanted, "availableReplicas": wanted,
        "readyReplicas": wanted, "observedGeneration": 2, **fields,
    }  # fmt: skip
    spec = {"replicas": wanted, **({"paused": True} if paused else {})}
    return {"spec": spec, **status(*conditions, **counts)}


def pod(phase: str, *containers: Object, reason: str = "", conditions: Any = ()) -> Object:
    more = {"reason": reason} if reason else {}
    return status(*conditions, phase=phase, containerStatuses=list(containers), **more)


def waiting(reason: str, **more: Any) -> Object:
    return {"state": {"waiting": {"reason": reason}}, **more}


def ended(code: int, reason: str = "", **more: Any) -> Object:
    return {"state": {"terminated": {"exitCode": code, "reason": reason}}, **more}


RUNNING = {"state": {"running": {}}}
DEPLOYMENT, SET, POD, JOB = "apps/v1 Deployment", "apps/v1 ReplicaSet", "v1 Pod", "batch/v1 Job"
SERVICE, BUDGET, OURS = "v1 Service", "policy/v1 PodDisruptionBudget", "x.dev/v1 BlueGreen"

CASES = (
    Case("rolled out", DEPLOYMENT, scaled(3), "Current", "available 3/3"),
    Case("one is due", DEPLOYMENT, scaled(3, availableReplicas=2), "InProgress", "available 2/3"),
    Case("paused on the way", DEPLOYMENT, scaled(3, availableReplicas=2, paused=True),
         "InProgress", "available 2/3, paused"),
    Case("replicas undeclared", DEPLOYMENT,
         status(observedGeneration=2, updatedReplicas=1, availableReplicas=1, replicas=1),
         "Current", "available 1/1"),
    Case("some are old", DEPLOYMENT, scaled(3, updatedReplicas=1),
         "InProgress", "available 3/3, 1 updated"),
    Case("old ones are left", DEPLOYMENT, scaled(3, replicas=4),
         "InProgress", "available 3/3, 1 surplus"),
    Case("scaled to zero", DEPLOYMENT, scaled(0), "Current", "scaled to zero"),
    Case("not seen", DEPLOYMENT, scaled(3, observedGeneration=1),
         "InProgress", "available 3/3, change not seen yet"),
    Case("out of time", DEPLOYMENT,
         scaled(3, cond("Progressing", "False", "ProgressDeadlineExceeded"), availableReplicas=0),
         "Failed", "available 0/3: ProgressDeadlineExceeded"),
    Case("no quota", DEPLOYMENT,
         scaled(3, cond("ReplicaFailure", reason="FailedCreate"), availableReplicas=0),
         "Failed", "available 0/3: FailedCreate"),
    Case("no quota, in words", DEPLOYMENT,
         scaled(3, cond("Progressing", "False", "ProgressDeadlineExceeded", "timed out"),
                cond("ReplicaFailure", reason="FailedCreate", says="exceeded quota: q"),
                availableReplicas=0), "Failed", "available 0/3: exceeded quota: q"),
    Case("out of time, in words", DEPLOYMENT,
         scaled(3, cond("Progressing", "False", "ProgressDeadlineExceeded", "timed out"),
                availableReplicas=0), "Failed", "available 0/3: timed out"),
    Case("paused before the newest template", DEPLOYMENT,
         scaled(3, updatedReplicas=0, paused=True),
         "InProgress", "available 3/3, 0 updated, paused"),
    Case("paused and rolled out", DEPLOYMENT, scaled(3, paused=True), "Current", "available 3/3"),
    Case("progressing is no failure", DEPLOYMENT, scaled(1, cond("Progressing")),
         "Current", "available 1/1"),
    Case("all are ready", SET, scaled(2), "Current", "ready 2/2"),
    Case("not all are ready", SET, scaled(2, readyReplicas=1), "InProgress", "ready 1/2"),
    Case("too many", SET, scaled(1, replicas=2), "InProgress", "ready 1/1"),
    Case("none is wanted", SET, scaled(0), "Current", "scaled to zero"),
    Case("a set not seen", SET, scaled(1, observedGeneration=1), "InProgress", "ready 1/1"),
    Case("none may be made", SET, scaled(1, cond("ReplicaFailure", reason="FailedCreate"),
         readyReplicas=0), "Failed", "ready 0/1: FailedCreate"),
    Case("none may be made, in words", SET,
         scaled(1, cond("ReplicaFailure", reason="FailedCreate", says="no quota"), readyReplicas=0),
         "Failed", "ready 0/1: no quota"),
    Case("ready", POD, pod("Running", RUNNING, conditions=[cond("Ready")]), "Current", "Ready"),
    Case("ready again", POD, pod("Running", {**RUNNING, "restartCount": 1},
         conditions=[cond("Ready")]), "Current", "Ready, 1 restart"),
    Case("not ready", POD, pod("Running", RUNNING, conditions=[cond("Ready", "False")]),
         "InProgress", "Running: Because"),
    Case("nothing is known", POD, {}, "InProgress", "Pending, not ready"),
    Case("starting", POD, pod("Pending", waiting("ContainerCreating")),
         "InProgress", "Pending: ContainerCreating"),
    Case("no such image", POD, pod("Pending", waiting("ContainerCreating"),
         waiting("ImagePullBackOff")), "Failed", "Pending: ImagePullBackOff"),
    Case("crashing", POD, pod("Running", waiting("CrashLoopBackOff", restartCount=7)),
         "Failed", "Running: CrashLoopBackOff, 7 restarts"),
    Case("an init container fails", POD,
         status(phase="Pending", initContainerStatuses=[waiting("ErrImagePull")]),
         "Failed", "Pending: ErrImagePull"),
    Case("no room", POD,
         pod("Pending", conditions=[cond("PodScheduled", "False", "Unschedulable")]),
         "Failed", "Pending: Unschedulable"),
    Case("no room, in words", POD,
         pod("Pending", conditions=[cond("PodScheduled", "False", "Unschedulable", "0/1 nodes"),
                                    cond("Ready", "False", "X", "no matter")]),
         "Failed", "Pending: 0/1 nodes"),
    Case("held at a gate, in words", POD,
         pod("Pending", conditions=[cond("PodScheduled", "False", "SchedulingGated", "blocked")]),
         "InProgress", "Pending: blocked"),
    Case("a readiness gate", POD,
         pod("Running", RUNNING, conditions=[cond("Ready", "False", "X", "gate a is not met")]),
         "InProgress", "Running: gate a is not met"),
    Case("no such Secret", POD,
         pod("Pending", {"state": {"waiting": {"reason": "CreateContainerConfigError",
                                               "message": 'secret "a" not found'}}}),
         "Failed", 'Pending: CreateContainerConfigError: secret "a" not found'),
    Case("crashing, in words that repeat its name", POD,
         pod("Running", {"state": {"waiting": {"reason": "CrashLoopBackOff",
                                               "message": "back-off 5m0s"}}, "restartCount": 7}),
         "Failed", "Running: CrashLoopBackOff, 7 restarts"),
    Case("evicted, in words", POD,
         {"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}},
         "Failed", "Failed: Evicted: low on memory"),
    Case("held at a gate", POD,
         pod("Pending", conditions=[cond("PodScheduled", "False", "SchedulingGated")]),
         "InProgress", "Pending: SchedulingGated"),
    Case("one container has died", POD, pod("Running", RUNNING, ended(137, "OOMKilled")),
         "Failed", "Running: OOMKilled (exit code 137)"),
    Case("done", POD, pod("Succeeded", ended(0, "Completed")), "Current", "Complete"),
    Case("evicted", POD, pod("Failed", reason="Evicted"), "Failed", "Failed: Evicted"),
    Case("ended badly", POD, pod("Failed", ended(0), ended(3), ended(4)),
         "Failed", "Failed: exit code 3"),
    Case("ended, nobody says how", POD, pod("Failed"), "Failed", "Failed"),
    Case("complete", JOB, status(cond("Complete"), succeeded=1), "Current", "Complete"),
    Case("given up", JOB, status(cond("Failed", reason="BackoffLimitExceeded")),
         "Failed", "Failed: BackoffLimitExceeded"),
    Case("giving up", JOB, status(cond("FailureTarget", reason="")),
         "Failed", "Failed: no reason given"),
    Case("held", JOB, {"spec": {"suspend": True}}, "Current", "suspended"),
    Case("running", JOB, {"spec": {"completions": 3}, **status(active=2, succeeded=1, failed=4)},
         "InProgress", "running 2, 1/3 complete, 4 failed"),
    Case("just made", JOB, {"spec": {}}, "InProgress", "running 0, 0/1 complete"),
    Case("an address", SERVICE, {"spec": {"clusterIP": "10.0.0.1"}}, "Current",
         "ClusterIP 10.0.0.1"),
    Case("headless", SERVICE, {"spec": {"clusterIP": "None", "type": "ClusterIP"}}, "Current",
         "headless"),
    Case("an alias", SERVICE, {"spec": {"type": "ExternalName", "externalName": "a.b"}},
         "Current", "ExternalName a.b"),
    Case("no balancer", SERVICE, {"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}},
         "InProgress", "LoadBalancer without address"),
    Case("a balancer", SERVICE, {"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"},
         "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
         "Current", "LoadBalancer 10.0.0.1"),
    Case("a budget", BUDGET, status(observedGeneration=2, currentHealthy=3, desiredHealthy=2,
         disruptionsAllowed=1), "Current", "healthy 3/2, may lose 1"),
    Case("over budget", BUDGET, status(observedGeneration=2, currentHealthy=1, desiredHealthy=2,
         ), "InProgress", "healthy 1/2, may lose 0"),
    Case("a budget not seen", BUDGET, status(), "InProgress", "change not seen yet"),
    Case("a budget of nothing", BUDGET,
         status(cond("DisruptionAllowed", "False", "SyncFailed"), observedGeneration=2),
         "Failed", "SyncFailed"),
    Case("no room in the budget", BUDGET,
         status(cond("DisruptionAllowed", "False", "InsufficientPods"), observedGeneration=2,
                currentHealthy=2, desiredHealthy=2), "Current", "healthy 2/2, may lose 0"),
    Case("Ready", OURS, status(cond("Ready", reason="Serving"), observedGeneration=2),
         "Current", "Ready: Serving"),
    Case("on its way", OURS, status(cond("Ready", "False", "Unavailable")),
         "InProgress", "not Ready: Unavailable"),
    Case("unknown", OURS, status(cond("Ready", "Unknown")), "InProgress", "Ready is unknown"),
    Case("stalled", OURS, status(cond("Ready", "False", "NoSpec"), cond("Stalled")),
         "Failed", "not Ready: NoSpec"),
    Case("contested", OURS, status(cond("Contested", reason="")), "Failed", "Contested"),
    Case("a generation not seen", OURS, status(cond("Ready"), observedGeneration=1),
         "InProgress", "change not seen yet"),
    Case("no status", "v1 ConfigMap", {}, "Current", "there"),
    Case("not Kubernetes's own", "x.dev/v1 Deployment", {}, "Current", "there"),
)  # fmt: skip


def live(kind: str, body: Object, **meta: Any) -> Object:
    version, name = kind.split()
    metadata = {"name": "x", "generation": 2, **meta}
    return {"apiVersion": version, "kind": name, "metadata": metadata, **body}


class TestReadiness:
    @pytest.mark.parametrize("case", CASES, ids=[f"{c.kind.split()[1]} {c.name}" for c in CASES])
    def test_it_is_told_in_the_words_of_its_kind(self, case: Case):
        assert readiness(live(case.kind, case.body)) == Readiness(case.verdict, case.words)  # type: ignore[arg-type]

    def test_what_is_being_deleted_is_that_before_all_else(self):
        going = live(POD, pod("Running", conditions=[cond("Ready")]), deletionTimestamp="t")
        kept = live(JOB, {}, deletionTimestamp="t", finalizers=["a/b", "c"])

        assert readiness(going) == Readiness("Terminating", "being deleted")
        assert readiness(kept) == Readiness("Terminating", "being deleted, kept by a/b, c")

    @pytest.mark.parametrize("status", ["True", "False"])
    def test_so_is_a_resource_whatever_its_ready_says(self, status):
        body = {"status": {"conditions": [cond("Ready", status, "Terminating")]}}
        ours = live(OURS, body, deletionTimestamp="t", finalizers=["a/b"])

        assert readiness(ours) == Readiness("Terminating", "being deleted, kept by a/b")

    @pytest.mark.parametrize("kind", [DEPLOYMENT, SET, POD, JOB, SERVICE, BUDGET, OURS])
    @pytest.mark.parametrize("junk", [None, 1, "x", [], {"conditions": 7, "replicas": "x"}])
    def test_nonsense_does_no_harm(self, kind, junk):
        assert readiness(live(kind, {"status": junk, "spec": junk})).words
