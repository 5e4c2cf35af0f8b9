"""Overlays: the objects of an installation, in the order in which they must be applied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from hedgerow.deploy import access, authors, confinement, network, policy, rights, workload
from hedgerow.deploy.names import METRICS_AUTH, PUBLISHER, SYSTEM, Names
from hedgerow.deploy.webhooks import configuration
from hedgerow.shard import Shard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from hedgerow.contract import Controller
    from hedgerow.registry import Registry
    from hedgerow_schemas.base import CustomResource, Object

    Controllers = Sequence[Controller[Any]]

Overlay = Literal["cluster", "namespaced", "no-webhook"]
OVERLAYS: tuple[Overlay, ...] = get_args(Overlay)


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an overlay: its path below `manifests`, its objects, and a comment."""

    path: str
    objects: tuple[Object, ...]
    why: str = ""
    text: str = ""
    """The text of the file, if it is not generated from its objects."""

    @property
    def directory(self) -> str:
        """The directory that it is in."""
        return self.path.rpartition("/")[0]

    @property
    def file(self) -> str:
        """Its name there."""
        return self.path.rpartition("/")[2]


def parts(
    overlay: Overlay,
    image: str,
    registry: Registry,
    *,
    names: Names | None = None,
    namespaces: tuple[str, ...] = (),
    chosen: tuple[str, ...] = (),
    options: Mapping[str, Mapping[str, str]] | None = None,
    shards: int = 1,
) -> list[Part]:
    """Return an overlay's files but for the CustomResourceDefinitions, for every controller.

    `namespaces` are those of the `namespaced` overlay; the others have none. `chosen` are the names
    by which the pods choose these controllers; none if they run by default. `options` are those of
    single controllers. With several `shards` each has a Deployment. Raises ValueError for more than
    there can be.
    """
    given, controllers = names or Names(), registry.controllers
    division = tuple(Shard(number, shards) for number in range(shards)) if shards > 1 else ()
    return [
        *_base(given, division),
        *_people(given, registry.resources),
        _part(
            "confinement",
            "policy",
            *confinement.policy(given, controllers),
            why=confinement.WHY,
        ),
        *(
            [_part("authors", "policy", *asked, why=authors.WHY)]
            if (asked := authors.policy(given, controllers))
            else ()
        ),
        *(
            _namespaced(given, controllers, namespaces)
            if overlay == "namespaced"
            else _everywhere(given, controllers)
        ),
        *(_policy(given) if overlay == "cluster" else ()),
        *(_webhook(given, controllers) if overlay == "cluster" else ()),
        _workload(
            overlay,
            workload.Program(
                given,
                image,
                namespaces,
                overlay == "cluster",
                chosen,
                options=options or {},
            ),
            division,
        ),
    ]


def _base(names: Names, division: Sequence[Shard]) -> Iterator[Part]:
    part = partial(_part, "base")
    yield part("namespace", workload.namespace(names))
    yield part("service-account", workload.service_account(names))
    yield part(
        "role",
        *access.role(names, rights.of_installation(names.base, division), SYSTEM),
        why="Creating is limited by name too: the name of an apply is authorized.",
    )
    yield part("metrics-service", network.metrics_service(names))
    yield part("network-policy", network.policy(names), why=network.WHY)
    yield part("pod-disruption-budget", workload.disruption_budget(names))


def _people(names: Names, resources: Sequence[type[CustomResource]]) -> Iterator[Part]:
    part = partial(_part, "rbac/people")
    yield part("viewer", access.viewer(names, resources))
    yield part(
        "editor",
        access.editor(names, resources),
        why="Whoever may change a BlueGreen may as well create pods there, since that is what it"
        "\nis for. `kubectl replace` needs the right to update, which is left out on purpose.",
    )
    yield part("metrics-reader", access.metrics_reader(names))


def _everywhere(names: Names, controllers: Controllers) -> Iterator[Part]:
    granted = rights.by_namespace(rights.of_controllers(controllers) | rights.of_cluster())
    roles = access.cluster_role(names, granted.pop(""))
    for name, there in granted.items():
        roles += access.role(names, there, namespace=name)
    yield _part("rbac/cluster", "role", *roles)
    reviews = access.cluster_role(names, rights.of_reviews(), METRICS_AUTH)
    yield _part(
        "rbac/metrics-auth", "role", *reviews, why="To ask who scrapes, and whether they may."
    )


def _namespaced(
    names: Names, controllers: Controllers, namespaces: tuple[str, ...]
) -> Iterator[Part]:
    roles: list[Object] = []
    for name in namespaces:
        granted = rights.of_controllers(controllers) | rights.of_namespace(name)
        roles += access.role(names, granted, namespace=name)
    yield _part("rbac/namespaced", "role", *roles)


def _webhook(names: Names, controllers: Controllers) -> Iterator[Part]:
    part = partial(_part, "webhook")
    yield part("service", network.webhook_service(names))
    yield part("network-policy", network.webhook_policy(names), why=network.WHY_WEBHOOK)
    yield part(
        "role",
        *access.cluster_role(names, rights.of_publishing(names.base), PUBLISHER),
        why="The operator tells by itself whom the API server is to trust: `caBundle`.",
    )
    yield part("policy", *confinement.publishing(names), why=confinement.WHY_PUBLISHING)
    yield part("configurations", *_configurations(names, controllers))


def _policy(names: Names) -> Iterator[Part]:
    made = policy.policy(names)
    yield Part("policy/policy.yaml", (made,), text=policy.text(names))
    yield _part("policy", "binding", policy.binding(names))


def _configurations(names: Names, controllers: Controllers) -> Iterator[Object]:
    service: str = network.webhook_service(names)["metadata"]["name"]
    made = configuration(
        controllers,
        name=names.base,
        namespace=names.namespace,
        service=service,
        domain=names.installation.domain,
    )
    if made:
        yield made | {"metadata": {**made["metadata"], "labels": names.labels}}


def _workload(overlay: Overlay, program: workload.Program, division: Sequence[Shard]) -> Part:
    programs = [replace(program, shard=shard) for shard in division] or [program]
    return _part(overlay, "deployment", *map(workload.deployment, programs))


def _part(directory: str, name: str, *objects: Object, why: str = "") -> Part:
    return Part(f"{directory}/{name}.yaml", objects, why)
