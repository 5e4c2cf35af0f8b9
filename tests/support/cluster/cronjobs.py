"""Cronjobs: manifests, rights and looks that the tests of CronJob on a real server share."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from hedgerow_testing.api import Api, Object
from support.cluster.definitions import committed, define
from support.cluster.rights import EVERYBODYS, OWN, READ, grant, rule

ROOT = Path(__file__).parents[3]
GROUP = "batch.tutorial.kubebuilder.io"
VERSION = f"{GROUP}/v1"
USER = "hedgerow-cronjob-under-test"
FIELD_MANAGER = "hedgerow-cronjob"
SCHEDULED_AT = f"{GROUP}/scheduled-at"
RUNS_FOR = "pod-complete.stage.kwok.x-k8s.io/delay"
"""How long a pod runs on a simulated node, as an annotation of it."""

RULES = [
    rule(GROUP, "cronjobs", *READ),
    rule(GROUP, "cronjobs/status", "patch"),
    rule("batch", "jobs", *OWN),
    *EVERYBODYS,
]
"""All that the operator may do in these tests: no `update`, no wildcard."""


def prepare(api: Api) -> None:
    """Install the CRD and grant the operator its rights."""
    define(api, committed(f"{GROUP}_cronjobs"), "hedgerow-install")
    grant(api, USER, RULES)
    api.served(VERSION)


def template(runs_for: float = 0) -> Object:
    """Return a Job template whose pod runs for so many seconds."""
    pod: Object = {
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{"name": "hello", "image": "busybox", "args": ["date"]}],
        }
    }
    if runs_for:
        pod["metadata"] = {"annotations": {RUNS_FOR: f"{runs_for:g}s"}}
    return {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"template": pod},
    }


class World:
    """One namespace of a cluster, seen and edited as people do."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def apply(self, name: str, schedule: str, runs_for: float = 0, **spec: Any) -> Object:
        """Apply a CronJob as a user."""
        spec = {"schedule": schedule, "jobTemplate": template(runs_for), **spec}
        return self.api.apply({**self.target(name), "spec": spec}, "user").must()

    def edit(self, name: str, **spec: Any) -> Object:
        """Change fields of the spec as `kubectl edit` does; None removes one."""
        return self.api.merge(self.target(name), {"spec": spec}, "kubectl-edit").must()

    def own(
        self, owner: Object, name: str, manager: str, *, suspend: bool = False, **meta: Any
    ) -> None:
        """Create a Job that a CronJob controls; one that is to `suspend` never ends."""
        job = self.target(name, "Job")
        job["metadata"] |= {
            "labels": {"hedgerow.dev/controller": "cronjob"},
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                }
            ],
            **meta,
        }
        spec = {**template()["spec"], **({"suspend": True} if suspend else {})}
        self.api.apply({**job, "spec": spec}, manager).must()

    def target(self, name: str, kind: str = "CronJob") -> Object:
        """Return the identity of an object."""
        version = VERSION if kind == "CronJob" else "batch/v1"
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": version, "kind": kind, "metadata": metadata}

    def get(self, name: str, kind: str = "CronJob") -> Object | None:
        """Return an object, or None."""
        reply = self.api.get(self.target(name, kind))
        return None if reply.status == 404 else reply.must()

    def delete(self, name: str, kind: str = "CronJob") -> None:
        """Delete an object as a user."""
        self.api.delete(self.target(name, kind)).must()

    def status(self, name: str) -> Object:
        """Return a CronJob's status; empty when there is none."""
        return (self.get(name) or {}).get("status", {})

    def condition(self, kind: str, name: str) -> str:
        """Return `status/reason` of a condition; empty when it is absent."""
        for condition in self.status(name).get("conditions", []):
            if condition["type"] == kind:
                return f"{condition['status']}/{condition['reason']}"
        return ""

    def jobs(self, name: str) -> list[Object]:
        """Return the Jobs of a CronJob, oldest start first."""
        found = self.api.raw("GET", f"/apis/batch/v1/namespaces/{self.namespace}/jobs").must()
        ours = [job for job in found["items"] if job["metadata"]["name"].startswith(f"{name}-")]
        return sorted(ours, key=lambda job: job["metadata"]["name"])

    def names(self, name: str) -> list[str]:
        """Return the names of the Jobs of a CronJob, oldest start first."""
        return [job["metadata"]["name"] for job in self.jobs(name)]

    def running(self, name: str) -> list[str]:
        """Return the names of the Jobs that have neither ended nor begun to go."""
        return [
            job["metadata"]["name"]
            for job in self.jobs(name)
            if not ended(job) and "deletionTimestamp" not in job["metadata"]
        ]


def ended(job: Object, kind: str = "") -> bool:
    """Return whether a Job has ended: `Complete` or `Failed`, or any way."""
    return any(
        condition["status"] == "True" and condition["type"] in ({kind} if kind else ENDINGS)
        for condition in job.get("status", {}).get("conditions", [])
    )


ENDINGS = {"Complete", "Failed"}


def created(obj: Object) -> datetime:
    """Return when an object was created."""
    return datetime.fromisoformat(obj["metadata"]["creationTimestamp"])


def seconds_of(job_name: str) -> int:
    """Return the scheduled second that a Job is named after."""
    return int(job_name.rpartition("-")[2])
