"""Manifests, as typed: everything that an installation consists of, as YAML for kubectl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.exits import Exit
from hedgerow.cli.flags import check, configured, given_options, with_options
from hedgerow.cli.install.definitions import rendered
from hedgerow.cli.options import controllers_option
from hedgerow.cli.output import echo_lines
from hedgerow.cli.program import program_name, registry, say
from hedgerow.deploy.names import Names, clashes
from hedgerow.deploy.overlays import Overlay, parts
from hedgerow.manifest import to_yaml
from hedgerow.objects import PROGRAM
from hedgerow.settings import Settings
from hedgerow.shard import MOST
from hedgerow.version import version
from hedgerow_schemas.crd import CRD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.registry import Registry
    from hedgerow_schemas.base import Object

IMAGE = f"{PROGRAM}:{version()}"
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
    if told := registry().unknown(settings.controllers):
        raise typer.BadParameter(f"--controllers: {told}")
    check(settings.controllers, settings.namespaces)
    if (overlay == "namespaced") != bool(settings.namespaces):
        raise typer.BadParameter("--overlay namespaced and --namespace need each other")
    image = _image() if image is None else image
    if not image or any(c.isspace() or not c.isprintable() for c in image):
        raise typer.BadParameter(f"--image: {image!r} is no image's name")
    configured(settings.options, settings.controllers, command)
    objects = printed(image, overlay, settings, shards=shards, crds=crds)
    echo_lines(to_yaml(*objects), nl=False)
    defined = sum(one["kind"] == CRD.kind for one in objects)
    if crds and defined < len(registry().limited(settings.controllers).resources):
        raise typer.Exit(Exit.FAILED)  # the definition that is left out was named


def _image() -> str:
    """Return hedgerow's own image; raises BadParameter for a program whose image nobody knows."""
    if program_name() == PROGRAM:
        return IMAGE
    raise typer.BadParameter(
        f"--image names the image whose entry point is {program_name()}; there is no default"
    )


def printed(
    image: str, overlay: Overlay, settings: Settings, *, shards: int, crds: bool
) -> list[Object]:
    """Return what is printed, in the order in which it is to be applied."""
    installed = configured(settings.options, settings.controllers).limited(settings.controllers)
    made = parts(
        overlay,
        image,
        installed,
        names=Names(settings.instance, program_name()),
        namespaces=tuple(dict.fromkeys(settings.namespaces)),
        chosen=tuple(dict.fromkeys(settings.controllers)),
        options=settings.options,
        shards=shards,
    )
    objects = [obj for part in made for obj in part.objects]
    return [*(definitions(installed) if crds else ()), *objects]


def definitions(installed: Registry) -> Iterable[Object]:
    """Return the CustomResourceDefinitions, without descriptions of Kubernetes's own types."""
    return rendered(installed.resources, program_name(), say).values()
