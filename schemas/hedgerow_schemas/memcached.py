"""Memcached: how many cache servers there are to be, and what each of them may take."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, WithJsonSchema

from hedgerow_schemas.base import ApiResource, CustomResource, Int32, Model, Object, Status
from hedgerow_schemas.definition import UPSTREAM, Column, Definition, Scale, named_after, rules

LONGEST_NAME = 63
"""A DNS-1035 label: the Service and a label of the pods are named so."""

LARGEST = 2**31 - 1
LEAST_MEMORY = 2
"""MiB: memcached refuses to start with less than twice its largest item, 1 MiB."""


Resources = Annotated[Object, WithJsonSchema({UPSTREAM: "io.k8s.api.core.v1.ResourceRequirements"})]
Affinity = Annotated[Object, WithJsonSchema({UPSTREAM: "io.k8s.api.core.v1.Affinity"})]
Toleration = Annotated[Object, WithJsonSchema({UPSTREAM: "io.k8s.api.core.v1.Toleration"})]
"""Parts of a pod specification, kept as the user wrote them: nothing added, nothing dropped."""


class MemcachedSpec(Model):
    """What is wanted: so many equal servers."""

    size: Int32 = Field(ge=0, le=LARGEST, description="How many pods run memcached.")
    image: str = Field(
        default="memcached:1.6-alpine",
        min_length=1,
        max_length=1024,
        pattern=r"^\S+$",
        description="The image of the pods; it holds a program named memcached.",
    )
    memory: Int32 = Field(
        default=64,
        ge=LEAST_MEMORY,
        le=LARGEST,
        description="MiB for items in each pod (memcached -m); the container gets more than that.",
    )
    max_connections: Int32 = Field(
        default=1024,
        ge=1,
        le=LARGEST,
        description="Simultaneous connections to each pod (memcached -c).",
    )
    resources: Resources | None = Field(
        default=None,
        description="The container's requests and limits, instead of those that follow from memory"
        " and maxConnections.",
    )
    affinity: Affinity | None = Field(
        default=None, description="Where the pods may run, or are to run rather than elsewhere."
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(),
        max_length=64,
        description="Which taints of nodes the pods tolerate.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    priority_class_name: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        description="The pods' PriorityClass.",
    )


class MemcachedStatus(Status):
    """What was observed; written by the operator alone."""

    nodes: tuple[str, ...] = Field(
        default=(),
        description="Names of the pods that run memcached: the oldest first, and those of one"
        " second by name.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    endpoints: tuple[str, ...] = Field(
        default=(),
        description="DNS names of the nodes that are ready, in the same order.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    replicas: Int32 | None = Field(default=None, description="How many pods there are.")
    ready_replicas: Int32 | None = Field(default=None, description="How many of them are ready.")
    selector: str | None = Field(
        default=None, description="The pods' label selector, for kubectl scale and autoscalers."
    )


class Memcached(CustomResource):
    """A cache of equal memcached servers behind a headless Service: clients shard by themselves."""

    model_config = ConfigDict(
        json_schema_extra=rules(named_after("a Service and a Deployment", LONGEST_NAME))
    )
    api: ClassVar[ApiResource] = ApiResource(
        "memcached.cache.example.com/v1", "Memcached", "memcacheds"
    )
    definition: ClassVar[Definition] = Definition(
        short_names=("memc",),
        scale=Scale(".spec.size", ".status.replicas", ".status.selector"),
        columns=(
            Column("Size", ".spec.size", "How many pods are asked for.", type="integer"),
            Column("Up", ".status.readyReplicas", "How many pods are ready.", type="integer"),
            Column(
                "Ready",
                '.status.conditions[?(@.type=="Ready")].status',
                "Whether all pods are available and nothing is contested.",
            ),
            Column(
                "Contested",
                '.status.conditions[?(@.type=="Contested")].status',
                "Whether another field manager holds a field that hedgerow declares.",
            ),
            Column(
                "Reason",
                '.status.conditions[?(@.type=="Ready")].reason',
                "Why it is ready or not.",
                priority=1,
            ),
            Column("Nodes", ".status.nodes", "The pods that run memcached.", priority=1),
            Column("Age", ".metadata.creationTimestamp", "Time since creation.", type="date"),
        ),
    )

    spec: MemcachedSpec = Field(description="What is wanted.")
    status: MemcachedStatus = Field(
        default=MemcachedStatus(),
        description="What was observed; written by the operator alone.",
    )
