"""Optional: an operator of somebody else that owns a kind which a cluster may not have."""

from __future__ import annotations

from typing import ClassVar

from hedgerow import (
    ApiResource,
    Apply,
    ConfigMap,
    Controller,
    CustomResource,
    Desired,
    Model,
    Observed,
    Status,
    View,
    main,
    ready,
)


class Monitor(View):
    """What another program defines, where it is installed."""

    api: ClassVar[ApiResource] = ApiResource("monitor.example.com/v1", "Monitor", "monitors")


class ThingSpec(Model):
    """What is wanted."""

    text: str = "hi"


class Thing(CustomResource):
    """A ConfigMap, and a Monitor beside it."""

    api: ClassVar[ApiResource] = ApiResource("optional.example.com/v1", "Thing", "things")
    spec: ThingSpec = ThingSpec()
    status: Status | None = None


def compose(thing: Thing, _: Observed) -> Desired:
    """Declare both."""
    name, data = thing.metadata.name, {"text": thing.spec.text}
    children = (Apply(ConfigMap, name, {"data": data}), Apply(Monitor, name, {"spec": data}))
    return Desired(children, Status(conditions=(ready(True, "Declared"),)))


OPTIONAL = Controller("optional", Thing, compose, owns=(ConfigMap, Monitor))

if __name__ == "__main__":
    main((OPTIONAL,), name="optional")
