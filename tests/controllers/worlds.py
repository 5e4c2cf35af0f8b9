"""Worlds: generated resources and observations for every controller.

A new controller adds a `Subject` with a strategy of its own; the properties come for free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from hypothesis import strategies as st

from hedgerow.controllers import bluegreen, cronjob, memcached
from hedgerow.core.contract import Controller, Observed
from hedgerow.core.starts import SCHEDULED_AT
from hedgerow_schemas.base import CustomResource, View
from hedgerow_schemas.bluegreen import LONGEST_NAME, BlueGreen
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.memcached import LARGEST, Memcached

Object = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


@dataclass(frozen=True)
class Subject:
    """One controller: `resources` are valid ones, `names` the names its children may have.

    `fields` are paths that compose reads of what it observes; hostile values go there. `lasting`
    children stay as they were made, whatever is declared later.
    """

    controller: Controller[CustomResource]
    resources: st.SearchStrategy[Object]
    names: Callable[[str], tuple[str, ...]]
    fields: tuple[tuple[str, ...], ...]
    lasting: bool = False

    def __str__(self) -> str:
        return self.controller.name

    @property
    def kinds(self) -> tuple[type[View], ...]:
        return (*self.controller.owns, *(r.kind for r in self.controller.relates))

    def read(self, resource: Object) -> CustomResource:
        return self.controller.resource.model_validate(resource)

    def hostile(self, name: str) -> st.SearchStrategy[Observed]:
        """Observations of objects that other programs wrote, however they liked.

        No two are of one kind and name.
        """
        objects = st.builds(
            _written,
            st.sampled_from(self.names(name)),
            st.dictionaries(st.sampled_from(self.fields), json_values, max_size=6),
        )
        views = st.builds(lambda kind, obj: kind(obj), st.sampled_from(self.kinds), objects)
        kinds = [kind.api.kind for kind in self.kinds]
        refused = st.frozensets(
            st.tuples(st.sampled_from(kinds), st.sampled_from(self.names(name))), max_size=2
        )
        many = st.lists(views, max_size=8, unique_by=lambda view: (type(view), view.name))
        split = many.flatmap(lambda found: st.integers(0, len(found)).map(lambda n: (found, n)))
        return st.builds(
            lambda cut, *rest: Observed(
                NOW, tuple(cut[0][cut[1] :]), tuple(cut[0][: cut[1]]), *rest
            ),
            split,
            refused,
            refused,
        )


def _written(name: str, values: dict[tuple[str, ...], Any]) -> Object:
    obj: Object = {"metadata": {"name": name, "namespace": "default", "uid": "u"}}
    for path, value in values.items():
        inner: Any = obj
        for step in path[:-1]:
            inner = inner.setdefault(step, {}) if isinstance(inner, dict) else {}
        if isinstance(inner, dict):
            inner[path[-1]] = value
    return obj


labels = st.from_regex(r"[a-z]([-a-z0-9]{0,45}[a-z0-9])?", fullmatch=True).filter(
    lambda name: len(name) <= LONGEST_NAME
)
containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["c", "main"]), "image": st.sampled_from(["example/echo:1", "x"])},
    optional={
        "args": st.lists(st.sampled_from(["-v", "--port=80"]), min_size=1, max_size=2),
        "resources": st.sampled_from(
            [{"limits": {"cpu": "1000m"}}, {"requests": {"memory": "1024Mi"}}]
        ),
        "env": st.sampled_from(
            [
                [{"name": "A", "value": "1"}],
                [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            ]
        ),
        "ports": st.sampled_from(
            [[{"containerPort": 80, "protocol": "TCP"}], [{"containerPort": 80}]]
        ),
    },
)
pod_specs = st.fixed_dictionaries(
    {"containers": st.lists(containers, min_size=1, max_size=1)},
    optional={
        "terminationGracePeriodSeconds": st.integers(0, 60),
        "volumes": st.just([{"name": "scratch", "emptyDir": {}}]),
        "securityContext": st.just({}),
        "nodeSelector": st.just({"disk": "ssd"}),
    },
)
port_lists = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(1, 65535), "name": st.sampled_from(["http", "admin", "metrics"])},
        optional={
            "protocol": st.sampled_from(["TCP", "UDP"]),
            "targetPort": st.one_of(st.integers(1, 65535), st.just("web")),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=(lambda port: port["name"], lambda port: port["port"]),
)


@st.composite
def bluegreens(draw: st.DrawFn) -> Object:
    """Valid BlueGreens: the chosen colour has pods."""
    spec: Object = {"routeTo": draw(st.sampled_from(["Blue", "Green"]))}
    for colour in ("Blue", "Green"):
        if colour == spec["routeTo"] or draw(st.booleans()):
            spec[f"{colour.lower()}Spec"] = draw(pod_specs)
    if draw(st.booleans()):
        spec["promotion"] = draw(st.sampled_from(["Immediate", "WhenAvailable"]))
    if draw(st.booleans()):
        spec["ports"] = draw(port_lists)
    return {
        "apiVersion": BlueGreen.api.group_version,
        "kind": BlueGreen.api.kind,
        "metadata": {"name": draw(labels), "namespace": "default", "uid": "owner-uid"},
        "spec": spec,
        "status": draw(st.sampled_from([{}, {"routeTo": "Blue"}, {"routeTo": "Grey"}])),
    }


@st.composite
def memcacheds(draw: st.DrawFn) -> Object:
    """Valid Memcacheds, the largest included."""
    counts = st.sampled_from([1, 64, 1000, 1024, LARGEST])
    spec = st.fixed_dictionaries(
        {"size": st.sampled_from([0, 1, 2, 3, LARGEST])},
        optional={
            "image": st.sampled_from(["memcached", "registry.example:5000/memcached:1.6"]),
            "memory": counts.filter(lambda count: count > 1),
            "maxConnections": counts,
        },
    )
    return {
        "apiVersion": Memcached.api.group_version,
        "kind": Memcached.api.kind,
        "metadata": {"name": draw(labels), "namespace": "default", "uid": "owner-uid"},
        "spec": draw(spec),
        "status": draw(st.sampled_from([{}, {"nodes": ["a"], "replicas": 1}])),
    }


@st.composite
def cronjobs(draw: st.DrawFn) -> Object:
    """Valid CronJobs, of schedules that are due, stalled, far off or no schedules at all."""
    pod = {**draw(pod_specs), "restartPolicy": "Never"}
    marks = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]), max_size=2)
    named = st.fixed_dictionaries({}, optional={"labels": marks, "annotations": marks})
    counts = st.integers(0, 2)
    spec = st.fixed_dictionaries(
        {
            "schedule": st.sampled_from(
                ["0 * * * *", "* * * * *", "@every 7m", "0 0 30 2 *", "junk", "TZ=UTC @hourly"]
            ),
            "jobTemplate": st.fixed_dictionaries(
                {"spec": st.just({"template": {"spec": pod}})}, optional={"metadata": named}
            ),
        },
        optional={
            "startingDeadlineSeconds": st.sampled_from([0, 60, 86_400]),
            "concurrencyPolicy": st.sampled_from(["Allow", "Forbid", "Replace"]),
            **dict.fromkeys(["suspend", "startGuard"], st.booleans()),
            **dict.fromkeys(["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], counts),
        },
    )
    stuck = {"type": "Stalled", "status": "True", "reason": "TooManyMissedStarts"}
    return {
        "apiVersion": CronJob.api.group_version,
        "kind": CronJob.api.kind,
        "metadata": {"name": draw(labels), "namespace": "default", "uid": "owner-uid"},
        "spec": draw(spec),
        "status": draw(
            st.sampled_from(
                [
                    {},
                    {"lastScheduleTime": "2026-01-01T11:00:00Z"},
                    {"missed": 101, "conditions": [stuck]},
                ]
            )
        ),
    }


SUBJECTS = (
    Subject(
        cast("Controller[CustomResource]", cronjob.CONTROLLER),
        cronjobs(),
        lambda name: (
            *(f"{name}-{second}" for second in (0, 1_767_265_200, 1_767_268_800, 10**12)),
            f"{name}-by-hand",
            "other",
        ),
        (
            ("metadata", "deletionTimestamp"),
            ("metadata", "annotations"),
            ("metadata", "annotations", SCHEDULED_AT),
            ("metadata", "finalizers"),
            ("metadata", "uid"),
            ("status",),
            ("status", "conditions"),
            ("status", "startTime"),
            ("status", "completionTime"),
        ),
        lasting=True,
    ),
    Subject(
        cast("Controller[CustomResource]", bluegreen.CONTROLLER),
        bluegreens(),
        lambda name: (name, f"{name}blue-deployment", f"{name}green-deployment", "other"),
        (
            ("metadata", "generation"),
            ("metadata", "deletionTimestamp"),
            ("metadata", "labels"),
            ("metadata", "labels", "pod-template-hash"),
            ("metadata", "ownerReferences"),
            ("spec",),
            ("spec", "selector"),
            ("spec", "replicas"),
            ("status",),
            ("status", "replicas"),
            ("status", "updatedReplicas"),
            ("status", "availableReplicas"),
            ("status", "observedGeneration"),
            ("status", "conditions"),
            ("status", "containerStatuses"),
            ("status", "initContainerStatuses"),
        ),
    ),
    Subject(
        cast("Controller[CustomResource]", memcached.CONTROLLER),
        memcacheds(),
        lambda name: (name, "other"),
        (
            ("metadata", "generation"),
            ("metadata", "deletionTimestamp"),
            ("metadata", "labels"),
            ("metadata", "labels", "pod-template-hash"),
            ("metadata", "labels", "memcached_cr"),
            ("metadata", "ownerReferences"),
            ("spec",),
            ("spec", "clusterIP"),
            ("spec", "selector"),
            ("spec", "selector", "matchLabels"),
            ("spec", "selector", "matchExpressions"),
            ("spec", "replicas"),
            ("status",),
            ("status", "phase"),
            ("status", "replicas"),
            ("status", "updatedReplicas"),
            ("status", "readyReplicas"),
            ("status", "availableReplicas"),
            ("status", "observedGeneration"),
            ("status", "conditions"),
            ("status", "containerStatuses"),
        ),
    ),
)
