"""Greeter: the smallest operator of somebody else, written against the public library alone."""

from __future__ import annotations

from typing import Any, ClassVar

from hedgerow import (
    ApiResource,
    Apply,
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


class ConfigMap(View):
    """A ConfigMap, as it is read."""

    api: ClassVar[ApiResource] = ApiResource("v1", "ConfigMap", "configmaps")


class GreetingSpec(Model):
    """What is wanted."""

    name: str = "world"


class GreetingStatus(Status):
    """What was observed."""

    text: str | None = None


class Greeting(CustomResource):
    """A greeting in a ConfigMap."""

    api: ClassVar[ApiResource] = ApiResource("greeter.example.com/v1", "Greeting", "greetings")
    spec: GreetingSpec = GreetingSpec()
    status: GreetingStatus | None = None


def compose(greeting: Greeting, observed: Observed) -> Desired:
    """Declare the ConfigMap, and report the text that it has."""
    name = greeting.metadata.name
    data: dict[str, Any] = {"data": {"text": f"Hello {greeting.spec.name}"}}
    live = observed.child(ConfigMap, name)
    text = live.text("data", "text") if live else ""
    conditions = (ready(bool(text), "Greeted" if text else "Waiting"),)
    status = GreetingStatus(text=text or None, conditions=conditions)
    return Desired((Apply(ConfigMap, name, data),), status)


GREETER = Controller("greeter", Greeting, compose, owns=(ConfigMap,))

if __name__ == "__main__":
    main((GREETER,), name="greeter")
