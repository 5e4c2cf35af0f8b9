"""Samples: the demo's BlueGreen at each step, as files that kubectl applies."""

from __future__ import annotations

from copy import deepcopy
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hedgerow.deploy.manifest import to_yaml
from hedgerow.files import overwrite

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

SAMPLE = "samples/bluegreen.yaml"
IMAGE = "busybox:1.37"
"""The image that somebody else sets in the green container."""
VARIABLE = {"name": "GREETING", "value": "hello"}


def sample() -> Object:
    """Return the sample that comes with hedgerow."""
    packaged = Path(str(files("hedgerow"))) / "manifests"
    manifests = packaged if packaged.exists() else Path(__file__).parents[3] / "manifests"
    return yaml.safe_load((manifests / SAMPLE).read_text(encoding="utf-8"))


def write(directory: Path) -> None:
    """Write a file for each step: the sample, and each further change to it."""
    blue = sample()
    green = _changed(blue)
    green["spec"]["routeTo"] = "Green"
    greeting = _changed(green)
    _container(greeting)["env"] = [VARIABLE]
    agreed = _changed(greeting)
    _container(agreed)["image"] = IMAGE
    steps = {"blue": blue, "green": green, "greeting": greeting, "agreed": agreed}
    for name, manifest in steps.items():
        overwrite(directory / f"{name}.yaml", to_yaml(manifest))


def container() -> tuple[str, str]:
    """Return the name and the image of the green container."""
    green = _container(sample())
    return green["name"], green["image"]


def _changed(manifest: Object) -> Object:
    return deepcopy(manifest)


def _container(manifest: Object) -> Object:
    return manifest["spec"]["greenSpec"]["containers"][0]
