"""Bodies: generated applied configurations of each kind."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hedgerow_testing.memory.schema import Object

Drawn = st.SearchStrategy[Any]


def parts(**optional: Drawn) -> Drawn:
    """Any subset of some fields."""
    return st.fixed_dictionaries({}, optional=optional)


def item(given: Object, **optional: Drawn) -> Drawn:
    """A map with these constants and some of these fields."""
    return parts(**optional).map(lambda more: {**given, **more})


def of(*values: Any) -> Drawn:
    """One of some values."""
    return st.sampled_from(values)


def under(name: str, inner: Drawn) -> Drawn:
    """A map of one field."""
    return inner.map(lambda value: {name: value})


def some(*items: Drawn) -> Drawn:
    """Some of these items, in any order, each at most once."""
    chosen = st.lists(st.sampled_from(range(len(items))), unique=True)

    @st.composite
    def drawn(draw: st.DrawFn) -> list[Any]:
        return [draw(items[index]) for index in draw(chosen)]

    return drawn()


OWNERS = [
    {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": f"{n}1111111-1111"}
    for n in range(2)
]
META = parts(
    labels=parts(a=of("1", "2"), b=of("1", "2")),
    annotations=parts(x=of("1", "2")),
    finalizers=some(of("hedgerow.dev/a"), of("hedgerow.dev/b"), of("z.dev/c")),
    ownerReferences=some(*map(of, OWNERS)),
)

SERVICE = parts(
    metadata=META,
    spec=parts(
        ports=some(
            item({"name": "http", "port": 80, "protocol": "TCP"}, targetPort=of(80, 8080, "web")),
            item({"name": "alt", "port": 81}, targetPort=of(80, "web"), protocol=of("TCP")),
            item({"name": "dns", "port": 53, "protocol": "UDP"}),
        ),
        selector=of({"a": "1"}, {"a": "2"}, {}),
        sessionAffinity=of("None"),
        publishNotReadyAddresses=st.booleans(),
    ),
)
CONFIG_MAP = parts(
    metadata=META, data=parts(**{"a": of("", "1", "2"), "b": of("1"), "c.d": of("3")})
)

AMOUNT = of("1", "1000m", "0.5", "500m", 1, "1Gi", "1024Mi")
FIELD = of(
    {"fieldPath": "metadata.name"},
    {"apiVersion": "v1", "fieldPath": "metadata.name"},
    {"fieldPath": "metadata.namespace"},
)
RESOURCE = of({"resource": "limits.cpu"}, {"resource": "limits.cpu", "divisor": "1000m"})
ENV = some(
    item({"name": "A"}, value=of("", "1", "2")),
    item({"name": "B"}, value=of("1")),
    item({"name": "POD"}, valueFrom=under("fieldRef", FIELD)),
    item({"name": "CPU"}, valueFrom=under("resourceFieldRef", RESOURCE)),
)
PORTS = some(
    item({"containerPort": 80}, name=of("http", "web"), protocol=of("TCP")),
    item({"containerPort": 53, "protocol": "UDP"}, name=of("dns")),
)
IMAGE = of("app", "app:1", "app:2", "registry.example:5000/app:latest")
CONTAINER = {
    "command": of(["a"], ["b", "c"], []),
    "env": ENV,
    "ports": PORTS,
    "resources": parts(limits=parts(cpu=AMOUNT, memory=AMOUNT), requests=parts(cpu=of("0.5", "1"))),
    "volumeMounts": some(item({"name": "v", "mountPath": "/v"}, readOnly=st.booleans())),
    "imagePullPolicy": of("Always", "Never"),
}
SIDE = {k: CONTAINER[k] for k in ("env", "ports")}
CONTAINERS = some(
    item({"name": "main", "image": "app:1"}, image=IMAGE, **CONTAINER),
    st.one_of(
        item({"name": "side", "image": "side:1"}, image=IMAGE, **SIDE),
        item({"name": "side"}, **SIDE),
    ),
)
VOLUMES = some(
    item({"name": "v"}, emptyDir=of({}, {"sizeLimit": "1024Mi"})),
    item({"name": "c"}, configMap=item({"name": "c"}, items=of([{"key": "k", "path": "p"}]))),
)
POD = parts(
    containers=CONTAINERS,
    volumes=VOLUMES,
    nodeSelector=of({}, {"a": "1"}, {"b": "2"}),
    tolerations=of([], [{"key": "k", "operator": "Exists"}]),
    hostNetwork=of(False),
    serviceAccountName=of("a", "b"),
    terminationGracePeriodSeconds=of(0, 30, 60),
)
SELECTOR = {"matchLabels": {"app": "x"}}
TEMPLATE = item({"metadata": {"labels": {"app": "x"}}}, spec=POD)
STRATEGY = of(
    {},
    {"type": "RollingUpdate"},
    {"rollingUpdate": {"maxSurge": 1}},
    {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
)
DEPLOYMENT = parts(
    metadata=META,
    spec=item(
        {},
        selector=of(SELECTOR),
        replicas=of(0, 1, 2),
        paused=st.booleans(),
        minReadySeconds=of(0, 5),
        strategy=STRATEGY,
        template=TEMPLATE,
    ),
)
BLUEGREEN = parts(
    metadata=META,
    spec=parts(
        routeTo=of("Blue", "Green"),
        blueSpec=POD,
        greenSpec=parts(containers=CONTAINERS),
        ports=some(
            item({"name": "http", "port": 80}, protocol=of("TCP"), targetPort=of(80, "web")),
            item({"name": "dns", "port": 53, "protocol": "UDP"}),
        ),
        promotion=of("Immediate", "WhenAvailable"),
    ),
)
BUDGET = parts(
    metadata=META,
    spec=item(
        {"selector": SELECTOR},
        selector=of(SELECTOR, {"matchLabels": {"app": "y"}}, {}),
        maxUnavailable=of(0, 1, "10%"),
        minAvailable=of(1),
        unhealthyPodEvictionPolicy=of("AlwaysAllow", "IfHealthyBudget"),
    ),
)
MEMCACHED = parts(
    metadata=META,
    spec=item({"size": 3}, size=of(0, 1, 5), image=of("memcached:1"), memory=of(64, 128)),
)
NAMESPACE = "conformance"
"""Where the objects under test live: an Event must name its own namespace."""
EVENT_BODY = {
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "hedgerow.dev/test",
    "reportingInstance": "one",
    "action": "Test",
    "reason": "Tested",
    "type": "Normal",
    "regarding": {"kind": "ConfigMap", "name": "x", "namespace": NAMESPACE},
}
EVENT = item(
    EVENT_BODY,
    metadata=META,
    note=of("a", "b"),
    series=of({"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}),
)
