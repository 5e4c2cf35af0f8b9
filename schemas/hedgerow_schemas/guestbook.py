"""Guestbook: how many instances there are to be, and which ConfigMap configures them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from hedgerow_schemas.base import ApiResource, CustomResource, Int32, Model, Status
from hedgerow_schemas.definition import Column, Definition, Rule, rules

LONGEST_NAME = 63
"""A label of the pods has the Guestbook's name."""

MOST = 10
"""The most instances of a Guestbook."""

Alias = Literal["Phone", "Address", "Name"]


class GuestbookSpec(Model):
    """What is wanted: so many equal instances, and one configuration."""

    size: Int32 = Field(ge=1, le=MOST, description="How many instances there are.")
    config_map_name: str = Field(
        min_length=1,
        max_length=15,
        description="The name of the ConfigMap with the configuration; hedgerow makes it.",
    )
    alias: Alias | None = Field(default=None, description="What a guest signs with.")


class GuestbookStatus(Status):
    """What was observed; written by the operator alone."""

    active: str = Field(
        default="", description="The name of the active pod; empty while no pod is ready."
    )
    standby: tuple[str, ...] = Field(
        default=(),
        description="The names of the other pods that are ready, sorted.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class Guestbook(CustomResource):
    """A guestbook: one active instance, the others on standby."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                rule=f"self.metadata.name.size() <= {LONGEST_NAME}",
                message=(
                    f"the name must have at most {LONGEST_NAME} characters: it is a label of the"
                    " pods"
                ),
                path=".metadata.name",
                on_create_only=True,
                editor={
                    "properties": {
                        "metadata": {"properties": {"name": {"maxLength": LONGEST_NAME}}}
                    }
                },
            )
        )
    )
    api: ClassVar[ApiResource] = ApiResource("webapp.my.domain/v1", "Guestbook", "guestbooks")
    definition: ClassVar[Definition] = Definition(
        columns=(
            Column("Size", ".spec.size", "How many instances are asked for.", type="integer"),
            Column("Active", ".status.active", "The active pod."),
            Column(
                "Ready",
                '.status.conditions[?(@.type=="Ready")].status',
                "Whether all instances are available and nothing is contested.",
            ),
            Column(
                "Contested",
                '.status.conditions[?(@.type=="Contested")].status',
                "Whether another field manager holds a field that hedgerow declares.",
            ),
            Column(
                "Reason",
                '.status.conditions[?(@.type=="Ready")].reason',
                "Why it is ready or not.",
                priority=1,
            ),
            Column("Standby", ".status.standby", "The other pods that are ready.", priority=1),
            Column("Age", ".metadata.creationTimestamp", "Time since creation.", type="date"),
        ),
    )

    spec: GuestbookSpec | None = Field(default=None, description="What is wanted.")
    status: GuestbookStatus = Field(
        default=GuestbookStatus(), description="What was observed; written by the operator alone."
    )
