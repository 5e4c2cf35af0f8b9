"""Operator: the objects with which an operator runs in a cluster, as `manifests` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hedgerow.cli.flags import configured
from hedgerow.cli.program import program_name
from hedgerow.deploy.names import Names
from hedgerow.deploy.overlays import parts
from hedgerow.objects import PROGRAM
from hedgerow.version import version

if TYPE_CHECKING:
    from hedgerow.deploy.overlays import Overlay
    from hedgerow.settings import Settings
    from hedgerow_schemas.base import Object

IMAGE = f"{PROGRAM}:{version()}"


def own_image() -> str:
    """Return hedgerow's own image; raises BadParameter for a program whose image nobody knows."""
    if program_name() == PROGRAM:
        return IMAGE
    raise typer.BadParameter(
        f"--image names the image whose entry point is {program_name()}; there is no default"
    )


def checked_image(image: str) -> str:
    """Return an image's name; raises BadParameter if it is none."""
    if not image or any(c.isspace() or not c.isprintable() for c in image):
        raise typer.BadParameter(f"--image: {image!r} is no image's name")
    return image


def operator_objects(
    image: str, overlay: Overlay, settings: Settings, *, shards: int = 1
) -> list[Object]:
    """Return all objects but the definitions, in the order in which they are to be applied."""
    made = parts(
        overlay,
        image,
        configured(settings.options, settings.controllers).limited(settings.controllers),
        names=Names(settings.instance, program_name()),
        namespaces=tuple(dict.fromkeys(settings.namespaces)),
        chosen=tuple(dict.fromkeys(settings.controllers)),
        options=settings.options,
        shards=shards,
    )
    return [obj for part in made for obj in part.objects]
