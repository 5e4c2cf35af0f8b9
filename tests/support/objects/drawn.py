"""Drawn: objects of a few kinds as hypothesis draws them, and what a plan says of one, compared."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hedgerow.fields.managed_fields import entries
from hedgerow.fields.sets import members
from hedgerow.kube.errors import KubeError
from hedgerow.objects import metadata
from hedgerow_tools.fields.forecast import details
from hedgerow_tools.planning.dry_run import Submitted
from support.objects.definitions import definition, free, number, of, text
from support.objects.definitions import items as listed

Object = dict[str, Any]

PART = of("name", name=text(), value=text(), weight=number(default=1))
RULE = {"rule": "self == oldSelf", "message": "id stays"}
SPEC = of(
    size=number(default=1, maximum=3),
    id=text(**{"x-kubernetes-validations": [RULE]}),
    tags=listed(text(), kind="set"),
    parts=listed(PART, "name"),
    blob=free(**{"x-kubernetes-map-type": "atomic"}),
)
WIDGET = definition("plan.example.com", "Widget", of(spec=SPEC))


def some(**drawn: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    """Draw a map with some of these fields."""
    return st.fixed_dictionaries({}, optional=drawn)


WORDS = st.sampled_from(["a", "b"])
TEXTS = some(a=WORDS, b=WORDS, c=WORDS)
META = some(labels=TEXTS, annotations=TEXTS)


def items(key: str, names: st.SearchStrategy[Any], **drawn: Any) -> st.SearchStrategy[list[Object]]:
    """Draw a list whose items have different keys."""
    item = st.builds(lambda name, rest: {key: name, **rest}, names, some(**drawn))
    return st.lists(item, max_size=2, unique_by=lambda one: one[key])


CONFIG_MAP = st.fixed_dictionaries({}, optional={"data": TEXTS, "metadata": META})
WIDGETS = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"size": st.sampled_from([1, 2, 3, 1, 2, 3, 4])},
            optional={
                "id": st.sampled_from("aaaaab"),
                "tags": st.lists(WORDS, unique=True, max_size=2),
                "parts": items("name", WORDS, value=WORDS, weight=st.integers(1, 2)),
                "blob": TEXTS,
            },
        )
    },
    optional={"metadata": META},
)
ENV = items("name", st.sampled_from(["A", "B"]), value=WORDS)
RESOURCES = some(
    limits=some(cpu=st.sampled_from(["1", "1000m", "2"])), requests=some(cpu=st.just("500m"))
)


def deployment(
    more: Object, app: str, image: str, env: list[Object], resources: Object, labels: Object
) -> Object:
    container = {"name": "c", "image": image}
    container |= {"env": env} if env else {}
    container |= {"resources": resources} if resources else {}
    return {
        "spec": {
            **more,
            "selector": {"matchLabels": {"app": app}},
            "template": {
                "metadata": {"labels": {**labels, "app": app}},
                "spec": {"containers": [container]},
            },
        }
    }


DEPLOYMENT = st.builds(
    deployment,
    some(
        replicas=st.integers(1, 3),
        paused=st.booleans(),
        strategy=st.just({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
    ),
    st.sampled_from(["x"] * 7 + ["y"]),
    st.sampled_from(["i:1", "i:2"]),
    ENV,
    RESOURCES,
    TEXTS,
)
PORTS = st.lists(
    st.builds(
        lambda port, rest: {"port": port, "name": f"p{port}", **rest},
        st.sampled_from([80, 443]),
        some(targetPort=st.integers(1, 2), protocol=st.sampled_from(["TCP", "UDP"])),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda one: one["port"],
)
SERVICE = st.builds(
    lambda ports, headless, more: {"spec": {"ports": ports, **headless, **more}},
    PORTS,
    st.sampled_from([*[{}] * 7, {"clusterIP": "None"}]),
    some(
        selector=TEXTS,
        sessionAffinity=st.sampled_from(["None", "ClientIP"]),
        publishNotReadyAddresses=st.booleans(),
    ),
)
KINDS = {
    "ConfigMap": ("v1", CONFIG_MAP),
    "Widget": ("plan.example.com/v1", WIDGETS),
    "Deployment": ("apps/v1", DEPLOYMENT),
    "Service": ("v1", SERVICE),
}
WAYS = st.sampled_from(["apply", "force", "force", "update", "update"])
ALLOCATED = ("clusterIP", "clusterIPs")
"""What the server draws by lot."""


def must_be_refused(said: Submitted, error: KubeError) -> None:
    """Fail unless an apply was foretold to be refused like this."""
    conflicts = {(one.field, one.manager) for one in error.causes if one.manager}
    assert said.live is None
    assert {(held.path, held.manager) for held in said.contested} == conflicts
    words = [r.causes[: len(details(error))] for r in said.refusals]  # hedgerow's own come after
    assert conflicts or words == [details(error)], (
        said.refusals,
        details(error),
    )


def must_equal(said: Submitted, real: Object) -> None:
    """Fail unless an object and its holders are as foretold."""
    assert said.live is not None, (said, real)
    assert content(said.live) == content(real)
    assert holders(said.live) == holders(real)


def content(obj: Object) -> Object:
    meta = {k: metadata(obj).get(k) for k in ("labels", "annotations", "generation")}
    spec = {k: v for k, v in obj.get("spec", {}).items() if k not in ALLOCATED}
    rest = {k: v for k, v in obj.items() if k not in ("metadata", "spec", "status")}
    return {**rest, "metadata": meta, "spec": spec}


def holders(obj: Object) -> dict[Any, frozenset[Any]]:
    found = {
        (holder.manager, holder.operation, holder.subresource): frozenset(members(tree))
        for holder, _, tree in entries(obj)
    }
    return {holder: held for holder, held in found.items() if held}


def told(lines: Any) -> set[Any]:
    return {
        (line.kind, line.path, str(line.old), str(line.new), named(line.holders), named(line.after))
        for line in lines
        if not any(name in line.path for name in ALLOCATED)
    }


def named(some: Any) -> tuple[Any, ...]:
    return tuple(sorted((one.manager, one.operation) for one in some))
