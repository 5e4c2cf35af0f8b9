"""Memcached: equal cache servers, found one by one through a headless Service."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from hedgerow.contract import Apply, Controller, Desired, Observed, Relation
from hedgerow.controllers import workloads
from hedgerow.controllers.workloads import ONE_BY_ONE, replicas_of, waits_for
from hedgerow.fields.canonical import quantity
from hedgerow.plan import conditions
from hedgerow.plan.immutable import degraded, fixed
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment, Pod, PodDisruptionBudget, Service
from hedgerow_schemas.memcached import Memcached, MemcachedSpec, MemcachedStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow_schemas.base import Condition, Object

NAMED_BY = "memcached_cr"
HEADLESS = "None"
PORT = USER = 11211
"""The port of memcached; the uid and gid of `memcache` in the official images."""


def compose(mc: Memcached, observed: Observed) -> Desired:
    """Declare the servers and the way to them; what live objects cannot change stays as it is."""
    name, own = mc.metadata.name, {"matchLabels": labels(mc)}
    servers, entry = observed.child(Deployment, name), observed.child(Service, name)
    chosen = dict(servers.selector or own) if servers else own
    children = [deployment(mc, chosen), service(mc, chosen, entry)]
    if mc.spec.size > 1:
        children.append(budget(mc, chosen))
    nodes = replicas_of(name, chosen, observed.all(Pod))
    kept = (
        *fixed(servers, ("spec", "selector"), own, "stops its pods and empties the cache"),
        *fixed(entry, ("spec", "clusterIP"), HEADLESS, "has clients lose that address"),
    )
    status = MemcachedStatus(
        nodes=tuple(node.name for node in nodes),
        replicas=servers.status_replicas if servers else 0,
        ready_replicas=servers.ready_replicas if servers else 0,
        selector=workloads.text(chosen),
        conditions=(health(mc, servers, nodes), *degraded(kept)),
    )
    return Desired(children=tuple(children), status=status)


def labels(mc: Memcached) -> dict[str, str]:
    """Return the labels of the pods, as the original operator gave them."""
    return {"app": "memcached", NAMED_BY: mc.metadata.name}


def deployment(mc: Memcached, chosen: Object) -> Apply:
    """Declare the servers; what the live Deployment selects by is among the labels of its pods."""
    spec = {
        "automountServiceAccountToken": False,
        "containers": [container(mc.spec)],
        "securityContext": workloads.unprivileged(USER),
        "topologySpreadConstraints": workloads.spread_over_nodes(chosen),
    }
    selected = View(chosen).mapping("matchLabels")
    template = {"metadata": {"labels": {**labels(mc), **selected}}, "spec": spec}
    fields = {"replicas": mc.spec.size, "selector": chosen, "strategy": ONE_BY_ONE}
    return Apply(Deployment, mc.metadata.name, {"spec": {**fields, "template": template}})


def container(spec: MemcachedSpec) -> Object:
    """Declare one server; an option and its value are two words, to memcached `-m=64` means 0."""
    options = f"-m {spec.memory} -c {spec.max_connections} -o modern -v"
    memory = footprint(spec)
    return {
        "name": "memcached",
        "image": spec.image,
        "command": ["memcached", *options.split()],
        "ports": [{"name": "memcached", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "50m", "memory": memory}, "limits": {"memory": memory}},
        "readinessProbe": workloads.answers(PORT, every=5, failures=3),
        # A restart empties the cache, so it takes a minute of silence.
        "livenessProbe": workloads.answers(PORT, every=10, failures=6),
        "securityContext": dict(workloads.CONFINED),
    }


def footprint(spec: MemcachedSpec) -> str:
    """Return a container's memory: -m, headroom of a quarter or 48 MiB, 16 KiB a connection.

    Each of some forty slab classes may take one page of 1 MiB beyond -m, and a busy connection
    borrows a read buffer of 16 KiB (memcached 1.6: slabs.c, memcached.h).
    """
    connections = ceil(spec.max_connections / 64)
    return quantity(f"{spec.memory + max(spec.memory // 4, 48) + connections}Mi")


def service(mc: Memcached, chosen: Object, live: Service | None) -> Apply:
    """Declare the headless Service: clients shard by themselves. One with an address keeps it."""
    port = {"name": "memcached", "port": PORT, "protocol": "TCP", "targetPort": PORT}
    spec: Object = {"ports": [port], "selector": View(chosen).mapping("matchLabels") or labels(mc)}
    if live is None or live.cluster_ip in ("", HEADLESS):
        spec["clusterIP"] = HEADLESS
    return Apply(Service, mc.metadata.name, {"spec": spec})


def budget(mc: Memcached, chosen: Object) -> Apply:
    """Declare that evictions take one server at a time; one that is down holds nothing to keep."""
    spec = {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": chosen}
    return Apply(PodDisruptionBudget, mc.metadata.name, {"spec": spec})


def health(mc: Memcached, live: Deployment | None, nodes: Iterable[Pod]) -> Condition:
    """Conclude `Ready`: every server that is asked for is there, as declared, and available."""
    none = mc.spec.size == 0
    if lack := waits_for(live, nodes, may_be_zero=none):
        return conditions.ready(False, "Unavailable", lack)
    message = "the size is 0" if none else "every node is available"
    return conditions.ready(True, "ScaledToZero" if none else "Serving", message)


CONTROLLER = Controller(
    "memcached",
    Memcached,
    compose,
    owns=(Deployment, Service, PodDisruptionBudget),
    relates=(Relation(Pod, NAMED_BY, workloads.names(NAMED_BY), Pod.reduced),),
)
