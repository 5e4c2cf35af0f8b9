"""Subjects: the kinds that generated programs are run on, and the edits that others make there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hedgerow_testing.memory.schema import Object
from model.bodies import (
    BLUEGREEN,
    BUDGET,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    EVENT_BODY,
    MEMCACHED,
    OWNERS,
    SELECTOR,
    SERVICE,
    Drawn,
    item,
    of,
    parts,
    some,
)  # fmt: skip

Edit = tuple[tuple[Any, ...], tuple[Any, ...]]
"""A path, and the values that it may be given; None takes it away."""
META_EDITS: tuple[Edit, ...] = (
    (("metadata", "labels", "a"), ("1", "3", None)),
    (("metadata", "labels"), ({"a": "1"}, {"c": "9"}, None)),
    (("metadata", "annotations", "x"), ("3", None)),
    (("metadata", "finalizers"), (["z.dev/c", "hedgerow.dev/a"], ["hedgerow.dev/a"], None)),
    (("metadata", "ownerReferences"), (OWNERS[::-1], None)),
    (("metadata", "managedFields"), ([{}], [])),
)


@dataclass(frozen=True, eq=False)
class Subject:
    """A kind under test: how programs on it begin, and what they are made of."""

    api_version: str
    kind: str
    bodies: Drawn
    first: Object
    edits: tuple[Edit, ...]
    status: Drawn | None = None
    scale: bool = False

    def __str__(self) -> str:
        return self.kind


def _inside(prefix: tuple[Any, ...]) -> Callable[[Edit], Edit]:
    return lambda edit: ((*prefix, *edit[0]), edit[1])


POD_EDITS: tuple[Edit, ...] = (
    (("containers", {"name": "main"}, "image"), ("app:9", None)),
    (("containers", {"name": "main"}, "env", {"name": "A"}, "value"), ("9", None)),
    (("containers", {"name": "main"}, "env"), ([{"name": "B", "value": "1"}], [])),
    (("containers", {"name": "main"}, "command"), (["z"], None)),
    (("containers", {"name": "main"}, "resources"), ({"limits": {"cpu": "2"}}, {}, None)),
    (("containers", {"name": "main"}, "ports"), ([{"containerPort": 80}], None)),
    (
        ("containers",),
        (
            [{"name": "side", "image": "side:9"}, {"name": "main", "image": "app:1"}],
            [{"name": "main", "image": "app:9"}],
        ),
    ),
    (("nodeSelector",), ({"z": "9"}, None)),
    (("volumes",), ([{"name": "v", "emptyDir": {}}], None)),
)
FIRST_META = {
    "labels": {"a": "1", "b": "1"},
    "annotations": {"x": "1"},
    "finalizers": ["hedgerow.dev/a"],
    "ownerReferences": OWNERS[:1],
}
FIRST_POD = {
    "containers": [
        {
            "name": "main",
            "image": "app:1",
            "command": ["a"],
            "env": [{"name": "A", "value": "1"}],
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "1"}},
        }
    ],
    "nodeSelector": {"a": "1"},
}
CONDITION = item({"type": "Ready", "status": "True", "reason": "A"}, message=of("x", "y"))
_SUBJECTS = (
    Subject(
        "v1",
        "Service",
        SERVICE,
        {
            "metadata": FIRST_META,
            "spec": {
                "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}],
                "selector": {"a": "1"},
            },
        },
        (
            *META_EDITS,
            (("spec", "selector"), ({"z": "9"}, None)),
            (("spec", "ports", {"port": 80, "protocol": "TCP"}, "targetPort"), (9, None)),
            (
                ("spec", "ports"),
                (
                    [
                        {"name": "dns", "port": 53, "protocol": "UDP"},
                        {"name": "http", "port": 80, "protocol": "TCP"},
                    ],
                    [{"name": "http", "port": 80, "protocol": "TCP"}],
                ),
            ),
            (("spec", "sessionAffinity"), ("None", None)),
        ),
    ),
    Subject(
        "v1",
        "ConfigMap",
        CONFIG_MAP,
        {"metadata": FIRST_META, "data": {"a": "1", "b": ""}},
        (*META_EDITS, (("data", "a"), ("9", None)), (("data",), ({"b": "1"}, {}, None))),
    ),
    Subject(
        "apps/v1",
        "Deployment",
        DEPLOYMENT,
        {
            "metadata": FIRST_META,
            "spec": {
                "selector": SELECTOR,
                "replicas": 2,
                "strategy": {"rollingUpdate": {"maxSurge": 1}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": FIRST_POD},
            },
        },
        (
            *META_EDITS,
            (("spec", "replicas"), (7, None)),
            (("spec", "paused"), (True, None)),
            (("spec", "strategy"), ({"rollingUpdate": {"maxSurge": 2}}, None)),
            (("spec", "template", "metadata", "labels", "b"), ("1", None)),
            *map(_inside(("spec", "template", "spec")), POD_EDITS),
        ),
        status=parts(
            observedGeneration=of(1, 2),
            replicas=of(0, 1),
            conditions=some(of({"type": "Available", "status": "True"})),
        ),
        scale=True,
    ),
    Subject(
        "app.demo.kakao.com/v1",
        "BlueGreen",
        BLUEGREEN,
        {"metadata": FIRST_META, "spec": {"routeTo": "Blue", "blueSpec": FIRST_POD}},
        (
            *META_EDITS,
            (("spec", "routeTo"), ("Green", "Blue")),
            (("spec", "ports"), ([{"name": "http", "port": 80}], None)),
            *map(_inside(("spec", "blueSpec")), POD_EDITS),
        ),
        status=parts(routeTo=of("Blue", "Green"), conditions=some(CONDITION)),
    ),
    Subject(
        "policy/v1",
        "PodDisruptionBudget",
        BUDGET,
        {"metadata": FIRST_META, "spec": {"maxUnavailable": 1, "selector": SELECTOR}},
        (
            *META_EDITS,
            (("spec", "maxUnavailable"), (2, None)),
            (("spec", "selector"), ({"matchLabels": {"z": "9"}}, None)),
        ),
    ),
    Subject(
        "memcached.cache.example.com/v1",
        "Memcached",
        MEMCACHED,
        {"metadata": FIRST_META, "spec": {"size": 3}},
        (
            *META_EDITS,
            (("spec", "size"), (7, 3)),
            (("spec", "image"), ("memcached:9", None)),
            (("spec", "memory"), (64, None)),
        ),
        status=parts(
            nodes=of([], ["a"], ["a", "b"]),
            replicas=of(0, 1),
            selector=of("a=b"),
            conditions=some(CONDITION),
        ),
    ),
    Subject(
        "events.k8s.io/v1", "Event", EVENT, {**EVENT_BODY, "metadata": FIRST_META}, META_EDITS[:2]
    ),
)
SUBJECTS = {subject.kind: subject for subject in _SUBJECTS}
