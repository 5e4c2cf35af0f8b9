"""Manifests, as typed: everything that an installation consists of, as YAML for kubectl."""

from __future__ import annotations

from typing import Annotated

import typer

from hedgerow.cli.exits import Exit
from hedgerow.cli.flags import check, configured, given_options, with_options
from hedgerow.cli.install.definitions import rendered
from hedgerow.cli.install.operator_objects import checked_image, operator_objects, own_image
from hedgerow.cli.options import controllers_option
from hedgerow.cli.output import echo_lines
from hedgerow.cli.program import program_name, registry, say
from hedgerow.deploy.confinement import SYSTEM_NAMESPACES
from hedgerow.deploy.manifest import to_yaml
from hedgerow.deploy.names import Names, clashes
from hedgerow.deploy.overlays import Overlay
from hedgerow.settings import Settings
from hedgerow.shard import MOST
from hedgerow_schemas.crd import CRD

Image = Annotated[
    str | None,
    typer.Option(
        metavar="IMAGE",
        help="The operator's image, with its registry, tag or digest.",
        show_default="that of this version; a program of your own has none",
    ),
]
Chosen = Annotated[
    Overlay,
    typer.Option(
        help="All namespaces with webhooks; the namespaces named, with no right beyond them; or"
        " all namespaces without webhooks.",
    ),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE,…",
        help="For `namespaced`: keep to these namespaces; commas or repeated.",
        show_default="none",
    ),
]
Instance = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The name of this installation, if the cluster has several; the names of its objects"
        " contain it.",
        show_default="none",
    ),
]
WhichControllers = Annotated[list[str] | None, controllers_option("Install these controllers only")]
Shards = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        max=MOST,
        help="Divide the namespaces among N operators, each a Deployment with its standby.",
        show_default="1: undivided",
    ),
]
WithCrds = Annotated[
    bool,
    typer.Option("--crds/--no-crds", help="Print the custom resources' definitions too."),
]


@with_options
def manifests_command(
    command: typer.Context,
    *,
    image: Image = None,
    overlay: Chosen = "cluster",
    namespace: Namespaces = None,
    instance: Instance = "",
    controllers: WhichControllers = None,
    shards: Shards = 1,
    crds: WithCrds = True,
) -> None:
    """Print the manifests of an installation: definitions, rights, the operator itself.

    They are those of `kubectl kustomize manifests/cluster` in the repository. Nothing is asked of
    a cluster, and nothing is changed.

    - `hedgerow manifests | kubectl apply --server-side --field-manager=hedgerow-install -f -`
    - `hedgerow manifests --image registry.example/hedgerow:0.1.0 --overlay no-webhook`
    - `hedgerow manifests --overlay namespaced -n shop -n shop-test --no-crds`
    - `hedgerow manifests --controllers bluegreen,memcached`
    - `hedgerow manifests --shards 4`
    """
    if clashes(instance):
        raise typer.BadParameter(
            f"objects of an instance called {instance!r} would have the names of another's objects"
        )
    settings = Settings(
        namespaces=tuple(namespace or ()),
        instance=instance,
        controllers=tuple(controllers or ()),
        options=given_options(command),
    )
    if problem := registry().unknown(settings.controllers):
        raise typer.BadParameter(f"--controllers: {problem}")
    check(settings.controllers, settings.namespaces)
    if (overlay == "namespaced") != bool(settings.namespaces):
        raise typer.BadParameter("--overlay namespaced and --namespace need each other")
    own = Names(instance, program_name()).namespace
    if closed := sorted({own, *SYSTEM_NAMESPACES}.intersection(settings.namespaces)):
        raise typer.BadParameter(f"--namespace: the operator may write nothing in {closed[0]}")
    image = own_image() if image is None else checked_image(image)
    configured(settings.options, settings.controllers, command)
    objects = operator_objects(image, overlay, settings, shards=shards)
    if crds:
        chosen = registry().limited(settings.controllers)
        objects = [*rendered(chosen.resources, program_name(), say).values(), *objects]
    echo_lines(to_yaml(*objects), nl=False)
    defined = sum(obj["kind"] == CRD.kind for obj in objects)
    if crds and defined < len(registry().limited(settings.controllers).resources):
        raise typer.Exit(Exit.FAILED)  # the definition that is left out was named
