"""Witness: reads from the API server, and checks what the demo says against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hedgerow.fields.managed_fields import entries
from hedgerow_schemas.base import View
from hedgerow_schemas.bluegreen import BlueGreen, Phase
from hedgerow_schemas.builtin import Deployment, Service
from hedgerow_testing.demo.errors import DemoError
from hedgerow_testing.demo.stage import NAMESPACE
from hedgerow_testing.sandbox.pauses import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from hedgerow_schemas.base import ApiResource, Condition, Object
    from hedgerow_testing.demo.stage import Stage

T = TypeVar("T")
NAME = "demo"
WAIT_TIMEOUT = 90.0


@dataclass(frozen=True, slots=True)
class Witness:
    """Reads the demo's objects, again each time."""

    stage: Stage

    async def bluegreen(self) -> BlueGreen:
        """Return the BlueGreen; raises DemoError if somebody deleted it."""
        live = await self.live(BlueGreen.api, NAME)
        if not live:
            raise DemoError(f"the BlueGreen {NAME} is gone", "somebody deleted it: start again")
        return BlueGreen.model_validate(live)

    async def service(self) -> Service:
        """Return the Service; an empty one if it does not exist."""
        return Service(await self.live(Service.api, NAME))

    async def deployment(self, phase: Phase) -> Deployment:
        """Return a colour's Deployment; an empty one if it does not exist."""
        return Deployment(await self.live(Deployment.api, deployment_name(phase)))

    async def live(self, api: ApiResource, name: str) -> Object:
        """Return the live object; an empty map if it does not exist."""
        return await self.stage.cluster.read_object(api, name, NAMESPACE) or {}

    async def events(self, reason: str) -> list[str]:
        """Return the notes of the BlueGreen's Events for a reason."""
        path = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
        params = {"fieldSelector": f"reason={reason}"}
        listed = await self.stage.cluster.get(path, params=params)
        return [str(item.get("note")) for item in listed["items"]]

    async def until(
        self,
        what: str,
        read: Callable[[], Awaitable[T]],
        fits: Callable[[T], object],
        describe: Callable[[T], str],
    ) -> T:
        """Read until `fits` accepts the value, and return it; `describe` words the progress.

        Raises DemoError with the last value after a timeout.
        """
        last: list[T] = []
        with self.stage.page.waiting(f"waiting for {what}") as progress:
            tty = self.stage.page.lively

            async def look() -> bool:
                last[:] = [await read()]
                if tty:
                    progress(f"waiting for {what}: {describe(last[0])}")
                return bool(fits(last[0]))

            if await until(look, seconds=WAIT_TIMEOUT):
                return last[0]
        seen = describe(last[0]) if last else "nothing"
        raise DemoError(
            f"waited {WAIT_TIMEOUT:.0f} s in vain for {what}", f"the API server says: {seen}"
        )

    def check(self, text: str, holds: object, shown: Any) -> None:
        """Print a statement if it `holds`; otherwise raise DemoError."""
        if holds:
            self.stage.page.checked(text)
            return
        self.stage.page.broken(text)
        raise DemoError(f"not so: {text}", f"the API server says: {shown}")


def deployment_name(phase: Phase) -> str:
    """Return the name of a colour's Deployment."""
    return f"{NAME}{phase.lower()}-deployment"


def selected(service: Service) -> str:
    """Return the colour that a Service selects; empty if there is none."""
    return str(service.selector.get("app.kubernetes.io/phase", ""))


def condition(bg: BlueGreen, kind: str) -> Condition | None:
    """Return a condition of the BlueGreen if it is about the current spec, or None."""
    fitting = (
        c
        for c in bg.status.conditions
        if c.type == kind and c.observed_generation == bg.metadata.generation
    )
    return next(fitting, None)


def says(bg: BlueGreen) -> str:
    """Return the Ready condition in one line."""
    ready = condition(bg, "Ready")
    return f"{ready.reason}: {ready.message}" if ready else "no word about this generation yet"


def holders(live: Mapping[str, Any], *steps: str) -> list[str]:
    """Return the managers whose entry holds the field at these fieldsV1 steps."""
    managers: list[str] = []
    for holder, _, tree in entries(dict(live)):
        if View(tree).at(*steps) is not None:
            managers.append(f"{holder.manager} ({holder.operation})")
    return managers
