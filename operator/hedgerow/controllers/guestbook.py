"""Guestbook: one ConfigMap, and a Deployment of pods of which one is active.

It is written against the public library alone, as an operator of somebody else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow import (
    CONFINED,
    KEEP_ALL,
    Apply,
    ConfigMap,
    Controller,
    Deployment,
    Desired,
    Keep,
    Observed,
    Pod,
    Relation,
    Select,
    View,
    answers,
    named_by,
    ready,
    replicas_of,
    stalled,
    unprivileged,
    unready,
    waits_for,
    why_stuck,
)
from hedgerow_schemas.guestbook import Guestbook, GuestbookSpec, GuestbookStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow import Object

NAMED_BY = "webapp.my.domain/guestbook"
IMAGE = "busybox:1.37"
PAGES = "pages"
"""The volume with the ConfigMap, and where it is mounted."""
PORT = 8080
USER = 65532
LISTED = 20
"""The most pods on standby that the status lists; there are more if somebody else scales."""


def compose(book: Guestbook, observed: Observed) -> Desired:
    """Return the ConfigMap, and the Deployment once that ConfigMap is ours to mount."""
    spec = book.spec
    if spec is None:
        return unspecified(book, observed.all(Pod))
    wanted, name = spec.config_map_name, book.metadata.name
    live = observed.child(Deployment, name)
    # Without this, a Guestbook would show whoever reaches its pods a ConfigMap of somebody else.
    configured = observed.child(ConfigMap, wanted) is not None
    workload = deployment(book, spec) if configured else Keep(Deployment, name)
    lack, stuck = waits_for(live, observed.all(Pod)), why_stuck(live)
    if not configured:
        lack = f"the ConfigMap {wanted} does not exist, or is not controlled by this Guestbook"
        stuck = ""
    elif live and mounted(live) != wanted:
        lack, stuck = f"the Deployment does not mount the ConfigMap {wanted} yet", ""
    # Pods that still run need the ConfigMap that they were started with.
    former = [Keep(ConfigMap, old.name) for old in observed.all(ConfigMap) if old.name != wanted]
    status = status_of(book, replicas_of(name, {"matchLabels": labels(book)}, observed.all(Pod)))
    conditions = (ready(True, "Serving", "all are available"),)
    if lack:
        conditions = unready(lack, stuck, waits_for(live, lasting=True))
    return Desired(
        (config(book, spec), workload, *(former if lack else ())),
        status.model_copy(update={"conditions": conditions}),
    )


def unspecified(book: Guestbook, pods: Iterable[Pod]) -> Desired:
    """Return the status of a Guestbook without a spec; nothing of it is made or removed."""
    name = book.metadata.name
    status = status_of(book, replicas_of(name, {"matchLabels": labels(book)}, pods))
    conditions = stalled("SpecMissing", "there is no spec: set spec.size and spec.configMapName")
    return Desired(KEEP_ALL, status.model_copy(update={"conditions": conditions}))


def labels(book: Guestbook) -> dict[str, str]:
    """Return the labels of the pods."""
    return {"app": "guestbook", NAMED_BY: book.metadata.name}


def config(book: Guestbook, spec: GuestbookSpec) -> Apply:
    """Return the ConfigMap: the page that the pods serve."""
    alias = (spec.alias or "Name").lower()
    page = f"<h1>{book.metadata.name}</h1>\n<p>Please sign with your {alias}.</p>\n"
    return Apply(ConfigMap, spec.config_map_name, {"data": {"index.html": page}})


def deployment(book: Guestbook, spec: GuestbookSpec) -> Apply:
    """Return the Deployment; a change of the ConfigMap reaches its pods without a restart."""
    pods = {
        "automountServiceAccountToken": False,
        "containers": [container()],
        "securityContext": unprivileged(USER),
        "volumes": [{"name": PAGES, "configMap": {"name": spec.config_map_name}}],
    }
    own = labels(book)
    template = {"metadata": {"labels": own}, "spec": pods}
    fields = {"replicas": spec.size, "selector": {"matchLabels": own}, "template": template}
    return Apply(Deployment, book.metadata.name, {"spec": fields})


def container() -> Object:
    """Return the one container, which serves the ConfigMap's files."""
    return {
        "name": "guestbook",
        "image": IMAGE,
        "command": ["httpd", "-f", "-p", str(PORT), "-h", f"/{PAGES}"],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}},
        "readinessProbe": answers(PORT, every=5, failures=3),
        "securityContext": dict(CONFINED),
        "volumeMounts": [{"name": PAGES, "mountPath": f"/{PAGES}", "readOnly": True}],
    }


def mounted(live: Deployment) -> str:
    """Return the name of the ConfigMap that the live Deployment's pods mount."""
    volumes = map(View, live.items("spec", "template", "spec", "volumes"))
    named = (v.text("configMap", "name") for v in volumes if v.text("name") == PAGES)
    return next(named, "")


def status_of(book: Guestbook, pods: Iterable[Pod]) -> GuestbookStatus:
    """Return which ready pod is active, and the others; it stays the same while it is ready."""
    names = [pod.name for pod in pods if pod.ready]
    active = book.status.active if book.status.active in names else "".join(names[:1])
    standby = tuple(name for name in names if name != active)
    return GuestbookStatus(active=active, standby=standby[:LISTED])


CONTROLLER = Controller(
    "guestbook",
    Guestbook,
    compose,
    owns=(ConfigMap, Deployment),
    relates=(
        Relation(
            Pod,
            select=Select(labels=NAMED_BY),
            same_namespace=True,
            of=named_by(NAMED_BY),
            reduce=Pod.reduced,
        ),
    ),
    child_names={ConfigMap: ("*",)},
    opt_in=True,
)
