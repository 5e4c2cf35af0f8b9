"""BlueGreen: two pod specifications side by side, and which of them gets the traffic."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from hedgerow_schemas.base import ApiResource, CustomResource, Model, Object, Status
from hedgerow_schemas.definition import UPSTREAM, Column, Definition, Rule, list_map, rules

Phase = Literal["Blue", "Green"]

LONGEST_NAME = 47
"""63 characters for a Deployment's pods' labels, less those of `green-deployment`."""

MOST_PORTS = 32

PodSpec = Annotated[Object, WithJsonSchema({UPSTREAM: "io.k8s.api.core.v1.PodSpec"})]
"""A pod specification, kept as the user wrote it: nothing added, nothing dropped."""

TargetPort = Annotated[
    int | str,
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "minimum": 1,
            "maximum": 65535,
            "maxLength": 15,
            "pattern": "^([a-z0-9]+-)*[a-z0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$",
        }
    ),
]
"""A port's number, or its IANA service name: with a letter, no hyphen at an end or doubled."""

_DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_DNS_1035_LABEL = "^[a-z]([-a-z0-9]*[a-z0-9])?$"


def _needs(phase: Phase) -> Rule:
    """Refuse to route to a colour that has no pods to route to."""
    field = f"{phase.lower()}Spec"
    return Rule(
        rule=f"self.routeTo != '{phase}' || has(self.{field})",
        message=f"routeTo is {phase}, so there must be a {field} to route to",
        path=f".{field}",
        reason="FieldValueRequired",
        editor={
            "if": {"properties": {"routeTo": {"const": phase}}, "required": ["routeTo"]},
            "then": {"required": [field]},
        },
    )


class Port(Model):
    """One port of the Service."""

    name: str | None = Field(
        default=None,
        max_length=63,
        pattern=_DNS_LABEL,
        description="Name of the port; every port needs one when there are several.",
    )
    port: int = Field(
        ge=1,
        le=65535,
        json_schema_extra={"format": "int32"},
        description="The port that the Service listens on.",
    )
    protocol: Literal["TCP", "UDP", "SCTP"] = Field(default="TCP", description="The protocol.")
    target_port: TargetPort | None = Field(
        default=None,
        description="Number or name of the pods' port; the same number as port when left out.",
    )
    app_protocol: str | None = Field(
        default=None,
        max_length=253,
        description="What is spoken on the port, such as kubernetes.io/h2c.",
    )


class BlueGreenSpec(Model):
    """What is wanted: two pod specifications, and which of them the Service selects."""

    model_config = ConfigDict(json_schema_extra=rules(_needs("Blue"), _needs("Green")))

    route_to: Phase = Field(description="The colour that the Service selects.")
    blue_spec: PodSpec | None = Field(
        default=None, description="The pods of the Deployment <name>blue-deployment."
    )
    green_spec: PodSpec | None = Field(
        default=None, description="The pods of the Deployment <name>green-deployment."
    )
    promotion: Literal["Immediate", "WhenAvailable"] = Field(
        default="Immediate",
        description="Immediate: the Service follows routeTo at once. WhenAvailable: it moves only"
        " when the chosen colour's Deployment is rolled out and available.",
    )
    # The default stays in this model: a list that the server defaults belongs to no field
    # manager, and its port 80 would stay beside the ports that somebody applies later.
    ports: tuple[Port, ...] = Field(
        default=(Port(name="http", port=80),),
        min_length=1,
        max_length=MOST_PORTS,
        description="All ports of the Service. Without it there is one: http, TCP, 80, to port 80"
        " of the pods. With it there are these and no other.",
        json_schema_extra=list_map("port", "protocol")
        | rules(
            Rule(
                rule="self.size() == 1 || self.all(p, has(p.name))",
                message="every port needs a name when there are several",
                reason="FieldValueRequired",
            ),
            Rule(
                rule="self.all(p, !has(p.name)"
                " || self.exists_one(q, has(q.name) && q.name == p.name))",
                message="the names of ports must be unique",
            ),
        ),
    )

    def phases(self) -> tuple[tuple[Phase, Object], ...]:
        """Return the colours that have a pod specification, Blue first."""
        pairs: tuple[tuple[Phase, Object | None], ...] = (
            ("Blue", self.blue_spec),
            ("Green", self.green_spec),
        )
        return tuple((phase, spec) for phase, spec in pairs if spec is not None)


class BlueGreenStatus(Status):
    """What was observed; written by the operator alone."""

    # Any string: it says what the Service selects, also when somebody else chose it.
    route_to: str | None = Field(
        default=None, description="The colour that the Service really selects."
    )


class BlueGreen(CustomResource):
    """Two revisions side by side, and one Service that points at the chosen one."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                rule=(
                    f"self.metadata.name.size() <= {LONGEST_NAME}"
                    f" && self.metadata.name.matches('{_DNS_1035_LABEL}')"
                ),
                message=(
                    f"the name must be a DNS-1035 label of at most {LONGEST_NAME} characters (a-z,"
                    " 0-9 and '-', beginning with a letter, not ending with '-'): a Service and two"
                    " Deployments are named after it"
                ),
                path=".metadata.name",
                on_create_only=True,
                editor={
                    "properties": {
                        "metadata": {
                            "properties": {
                                "name": {"maxLength": LONGEST_NAME, "pattern": _DNS_1035_LABEL}
                            }
                        }
                    }
                },
            )
        )
    )
    api: ClassVar[ApiResource] = ApiResource("app.demo.kakao.com/v1", "BlueGreen", "bluegreens")
    definition: ClassVar[Definition] = Definition(
        short_names=("bg",),
        columns=(
            Column("Wanted", ".spec.routeTo", "The colour that is asked for."),
            Column("RouteTo", ".status.routeTo", "The colour that the Service really selects."),
            Column(
                "Ready",
                '.status.conditions[?(@.type=="Ready")].status',
                "Whether the routed colour is available and nothing is contested.",
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
            Column("Promotion", ".spec.promotion", "When the Service follows routeTo.", priority=1),
            Column("Age", ".metadata.creationTimestamp", "Time since creation.", type="date"),
        ),
    )

    spec: BlueGreenSpec = Field(description="What is wanted.")
    status: BlueGreenStatus = Field(
        default=BlueGreenStatus(), description="What was observed; written by the operator alone."
    )
