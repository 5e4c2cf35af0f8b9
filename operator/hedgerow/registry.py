"""Registry: the controllers that there are, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hedgerow.controllers import bluegreen, memcached
from hedgerow.controllers.cronjob import controller as cronjob

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import CustomResource

CONTROLLERS = {
    controller.name: controller
    for controller in cast(
        "tuple[Controller[CustomResource], ...]",
        (bluegreen.CONTROLLER, memcached.CONTROLLER, cronjob.CONTROLLER),
    )
}


def chosen(names: Iterable[str]) -> tuple[Controller[CustomResource], ...]:
    """Return the controllers of these names, each once; all of them for none."""
    return tuple(CONTROLLERS[name] for name in dict.fromkeys(names or CONTROLLERS))
