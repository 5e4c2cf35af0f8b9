"""Worlds: generated resources and observations for every controller.

A new controller adds a `Subject` with a strategy of its own; the properties come for free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from hypothesis import strategies as st

from hedgerow.controllers import bluegreen
from hedgerow.core.contract import Controller, Observed
from hedgerow_schemas.base import CustomResource, View
from hedgerow_schemas.bluegreen import LONGEST_NAME, BlueGreen

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

    `fields` are paths that compose reads of what it observes; hostile values go there.
    """

    controller: Controller[CustomResource]
    resources: st.SearchStrategy[Object]
    names: Callable[[str], tuple[str, ...]]
    fields: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return self.controller.name

    @property
    def kinds(self) -> tuple[type[View], ...]:
        return (*self.controller.owns, *(r.kind for r in self.controller.relates))

    def read(self, resource: Object) -> CustomResource:
        return self.controller.resource.model_validate(resource)

    def hostile(self, name: str) -> st.SearchStrategy[Observed]:
        """Observations of objects that other programs wrote, however they liked."""
        views = st.builds(
            lambda kind, child, values: kind(_written(child, values)),
            st.sampled_from(self.kinds),
            st.sampled_from(self.names(name)),
            st.dictionaries(st.sampled_from(self.fields), json_values, max_size=6),
        )
        kinds = [kind.api.kind for kind in self.kinds]
        refused = st.frozensets(
            st.tuples(st.sampled_from(kinds), st.sampled_from(self.names(name))), max_size=2
        )
        many = st.lists(views, max_size=5).map(tuple)
        return st.builds(Observed, st.just(NOW), many, many, refused)


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


SUBJECTS = (
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
)
