"""Memcached: equal cache servers, each with an address of its own in a headless Service."""

from __future__ import annotations

import re
from math import ceil
from typing import TYPE_CHECKING, Final

from hedgerow import (
    CONFINED,
    PORT_MISSING,
    Apply,
    Controller,
    Deployment,
    Desired,
    Observed,
    Pod,
    PodDisruptionBudget,
    Relation,
    Select,
    Service,
    View,
    answers,
    degraded,
    fixed,
    missing_port,
    named_by,
    quantity,
    ready,
    replicas_of,
    selector_text,
    stalled,
    unprivileged,
    unready,
    waits_for,
    why_stuck,
)
from hedgerow_schemas.memcached import Memcached, MemcachedSpec, MemcachedStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow import Condition, Object

NAMED_BY = "memcached_cr"
HEADLESS = "None"
PORT = USER = 11211
"""The port of memcached; the uid and gid of `memcache` in the official images."""
ONE_BY_ONE: Final[Object] = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
}
"""The strategy that loses the least cached data: create a new pod, then delete an old one.

With keys spread over n pods, 1/(n+1) of the keys are on another pod at a time. Deleting first gives
1/n.
"""


def compose(mc: Memcached, observed: Observed) -> Desired:
    """Return the Deployment, the Service and the budget; immutable live fields stay as they are."""
    name, own = mc.metadata.name, {"matchLabels": labels(mc)}
    servers, entry = observed.child(Deployment, name), observed.child(Service, name)
    chosen = dict(servers.selector or own) if servers else own
    children = [deployment(mc, chosen), service(mc, chosen, entry)]
    if mc.spec.size > 1:
        children.append(budget(mc, chosen))
    nodes = by_age(replicas_of(name, chosen, observed.all(Pod)))
    kept = (
        *fixed(servers, ("spec", "selector"), own, "stops its pods and empties the cache"),
        *fixed(entry, ("spec", "clusterIP"), HEADLESS, "makes clients lose that address"),
    )
    status = MemcachedStatus(
        nodes=tuple(node.name for node in nodes),
        endpoints=endpoints(mc, nodes) if entry else (),
        replicas=servers.status_replicas if servers else 0,
        ready_replicas=servers.ready_replicas if servers else 0,
        selector=selector_text(chosen),
        conditions=(*health(mc, servers, entry, nodes), *degraded(kept)),
    )
    return Desired(children=tuple(children), status=status)


def by_age(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the oldest pods first, those of one second by name: a new one moves no other."""
    return tuple(sorted(pods, key=lambda pod: (pod.created, pod.name)))


def endpoints(mc: Memcached, nodes: Iterable[Pod]) -> tuple[str, ...]:
    """Return the names by which the cluster's DNS knows the Service's ready pods.

    Pods of a Deployment have no host name of their own, so that CoreDNS names them after their
    addresses. The resolvers of pods add the cluster's domain.
    """
    hosts = (re.sub("[.:]", "-", node.address) for node in nodes if node.ready and node.address)
    return tuple(f"{host}.{mc.metadata.name}.{mc.metadata.namespace}.svc" for host in hosts)


def labels(mc: Memcached) -> dict[str, str]:
    """Return the labels of the pods, the same as those of the original operator."""
    return {"app": "memcached", NAMED_BY: mc.metadata.name}


def deployment(mc: Memcached, chosen: Object) -> Apply:
    """Return the Deployment; its pods also have the labels that the live one's selector needs."""
    spec = {
        "automountServiceAccountToken": False,
        "containers": [container(mc.spec)],
        "securityContext": unprivileged(USER),
        "topologySpreadConstraints": spread_over_nodes(chosen),
        **placement(mc.spec),
    }
    selected = View(chosen).mapping("matchLabels")
    template = {"metadata": {"labels": {**labels(mc), **selected}}, "spec": spec}
    fields = {"replicas": mc.spec.size, "selector": chosen, "strategy": ONE_BY_ONE}
    return Apply(Deployment, mc.metadata.name, {"spec": {**fields, "template": template}})


def placement(spec: MemcachedSpec) -> Object:
    """Return what the user says of where the pods run; what he leaves out is not declared."""
    given = {
        "affinity": spec.affinity,
        "tolerations": list(spec.tolerations) or None,
        "priorityClassName": spec.priority_class_name,
    }
    return {field: value for field, value in given.items() if value is not None}


def container(spec: MemcachedSpec) -> Object:
    """Return one server's container; options and values are separate: `-m=64` would mean 0."""
    options = f"-m {spec.memory} -c {spec.max_connections} -o modern -v"
    memory = footprint(spec)
    usual = {"requests": {"cpu": "50m", "memory": memory}, "limits": {"memory": memory}}
    return {
        "name": "memcached",
        "image": spec.image,
        "command": ["memcached", *options.split()],
        "ports": [{"name": "memcached", "containerPort": PORT, "protocol": "TCP"}],
        "resources": usual if spec.resources is None else spec.resources,
        "readinessProbe": answers(PORT, every=5, failures=3),
        # A restart empties the cache, so it happens only after a minute without an answer.
        "livenessProbe": answers(PORT, every=10, failures=6),
        "securityContext": dict(CONFINED),
    }


def footprint(spec: MemcachedSpec) -> str:
    """Return a container's memory: -m, plus a quarter (at least 48 MiB), plus 16 KiB a connection.

    Each of about forty slab classes may take one page of 1 MiB beyond -m, and a busy connection
    uses a read buffer of 16 KiB (memcached 1.6: slabs.c, memcached.h).
    """
    connections = ceil(spec.max_connections / 64)
    return quantity(f"{spec.memory + max(spec.memory // 4, 48) + connections}Mi")


def spread_over_nodes(selector: Object) -> list[Object]:
    """Return the constraints that spread the selected pods over nodes, as far as possible.

    Pods of an older template do not count: a rollout will delete them.
    """
    return [
        {
            "labelSelector": selector,
            "matchLabelKeys": ["pod-template-hash"],
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
        }
    ]


def service(mc: Memcached, chosen: Object, live: Service | None) -> Apply:
    """Return the headless Service, as clients shard keys; a live one with an address keeps it."""
    port = {"name": "memcached", "port": PORT, "protocol": "TCP", "targetPort": PORT}
    spec: Object = {"ports": [port], "selector": View(chosen).mapping("matchLabels") or labels(mc)}
    if live is None or live.cluster_ip in ("", HEADLESS):
        spec["clusterIP"] = HEADLESS
    return Apply(Service, mc.metadata.name, {"spec": spec})


def budget(mc: Memcached, chosen: Object) -> Apply:
    """Return the budget: evict one server at a time, and unhealthy ones, without data, always."""
    spec = {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": chosen}
    return Apply(PodDisruptionBudget, mc.metadata.name, {"spec": spec})


def health(
    mc: Memcached, live: Deployment | None, entry: Service | None, nodes: Iterable[Pod]
) -> tuple[Condition, ...]:
    """Return `Ready`: true if every requested server exists, is as declared, and is available.

    It is `Stalled` if the Service leads to a port that no server has: others may add one.
    """
    none = mc.spec.size == 0
    if live and entry and (lack := missing_port(entry.ports, live.pod_spec)):
        return stalled(PORT_MISSING, lack)
    if lack := waits_for(live, nodes, may_be_zero=none):
        lasting = waits_for(live, may_be_zero=none, lasting=True)
        return unready(lack, why_stuck(live), lasting)
    message = "the size is 0" if none else "every node is available"
    return (ready(True, "ScaledToZero" if none else "Serving", message),)


CONTROLLER = Controller(
    "memcached",
    Memcached,
    compose,
    owns=(Deployment, Service, PodDisruptionBudget),
    relates=(
        Relation(
            Pod,
            select=Select(labels=NAMED_BY),
            same_namespace=True,
            of=named_by(NAMED_BY),
            reduce=Pod.reduced,
        ),
    ),
)
