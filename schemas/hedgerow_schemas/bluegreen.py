"""BlueGreen: two pod specifications side by side, and which of them gets the traffic."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from hedgerow_schemas.base import ApiResource, CustomResource, Int32, Model, Object, Status, Time
from hedgerow_schemas.definition import UPSTREAM, Column, Definition, Rule, list_map, rules

Phase = Literal["Blue", "Green"]

SwitchPhase = Literal[
    "Routed",
    "WaitingForAvailability",
    "Checking",
    "CheckFailed",
    "Held",
    "Switching",
    "Overlapping",
    "Baking",
    "RollingBack",
    "RolledBack",
]
"""Where a switch stands; docs/guides/blue-green.md has the table of transitions."""

LONGEST_NAME = 47
"""63 characters for a Deployment's pods' labels, less those of `green-deployment`."""

MOST_PORTS = 32
MOST_CHECKS = 8
MOST_PODS = 16
"""The most pods that a check's Job may run at once, and the most that have to succeed."""
LONGEST_WAIT = 3600
"""Seconds: the longest time of a check, and of an overlap."""

_ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_PODS: Object = {"type": "integer", "format": "int32", "maximum": MOST_PODS}
CheckJob = Annotated[
    Object,
    WithJsonSchema(
        {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "metadata": _ANYTHING,
                "spec": _ANYTHING
                | {
                    "required": ["template"],
                    "properties": {
                        "template": _ANYTHING,
                        "ttlSecondsAfterFinished": {"type": "integer", "format": "int32"},
                        "parallelism": _PODS,
                        "completions": _PODS,
                    },
                },
            },
        }
    ),
]
"""A Job template, kept as the user wrote it: nothing added, nothing dropped.

The API server judges it when the Job is created. A third pod specification in the definition would
bring it, with the managed fields of two who apply it, near the size that etcd takes.
"""

Seconds = Annotated[Int32, Field(ge=0)]

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
    port: Int32 = Field(
        ge=1,
        le=65535,
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


class Check(Model):
    """A Job that has to complete before a colour is routed."""

    name: str = Field(
        min_length=1, max_length=20, pattern=_DNS_LABEL, description="Name of the check."
    )
    timeout_seconds: Int32 = Field(
        default=45,
        ge=1,
        le=LONGEST_WAIT,
        description="How long the check may take in all; then it has failed.",
    )
    job: CheckJob = Field(
        description="Passes when a Job of this template completes. It finds the colour that is to"
        " be routed behind the Service <name>-preview. parallelism and completions are at most"
        f" {MOST_PODS}.",
    )


ROUTING_RULES = (
    Rule(
        rule="self.promotion != 'WhenChecked' || (has(self.checks) && self.checks.size() > 0)",
        message="promotion is WhenChecked, so there must be checks",
        path=".checks",
        reason="FieldValueRequired",
        editor={
            "if": {
                "properties": {"promotion": {"const": "WhenChecked"}},
                "required": ["promotion"],
            },
            "then": {"required": ["checks"]},
        },
    ),
    Rule(
        # Immediate is the way past checks in an emergency: they need not be taken out for that.
        rule="!has(self.checks) || self.checks.size() == 0 || self.promotion != 'WhenAvailable'",
        message="checks go with promotion WhenChecked, or with Immediate, which runs none",
        path=".promotion",
        editor={
            "if": {"required": ["checks"]},
            "then": {
                "properties": {"promotion": {"enum": ["WhenChecked", "Immediate"]}},
                "required": ["promotion"],
            },
        },
    ),
    Rule(
        rule="!has(self.bakeSeconds) || self.promotion != 'Immediate'",
        message="bakeSeconds needs promotion WhenAvailable or WhenChecked: a colour that was never"
        " available would be rolled back at once",
        path=".bakeSeconds",
        editor={
            "if": {"required": ["bakeSeconds"]},
            "then": {
                "properties": {"promotion": {"enum": ["WhenAvailable", "WhenChecked"]}},
                "required": ["promotion"],
            },
        },
    ),
    Rule(
        rule="!has(self.bakeUnavailableSeconds)"
        " || (has(self.bakeSeconds) && self.bakeUnavailableSeconds < self.bakeSeconds)",
        message="bakeUnavailableSeconds needs a longer bakeSeconds",
        path=".bakeUnavailableSeconds",
        editor={
            "if": {"required": ["bakeUnavailableSeconds"]},
            "then": {"required": ["bakeSeconds"]},
        },
    ),
    Rule(
        rule="!has(self.overlapSeconds) || self.switch == 'Overlap'",
        message="overlapSeconds needs switch Overlap",
        path=".overlapSeconds",
        editor={
            "if": {"required": ["overlapSeconds"]},
            "then": {
                "properties": {"switch": {"const": "Overlap"}},
                "required": ["switch"],
            },
        },
    ),
    Rule(
        rule="!has(self.bakeSeconds) || self.switch != 'Overlap' || "
        "(has(self.overlapSeconds) ? self.overlapSeconds : 10) <= self.bakeSeconds",
        message="the overlap (overlapSeconds, 10 by default) must not be longer than bakeSeconds",
        path=".overlapSeconds",
    ),
)
"""What contradicts itself; of what a switch could not go on with, `errors` says the same."""


class BlueGreenSpec(Model):
    """What is wanted: two pod specifications, and which of them the Service selects."""

    model_config = ConfigDict(
        json_schema_extra=rules(_needs("Blue"), _needs("Green"), *ROUTING_RULES)
    )

    route_to: Phase = Field(description="The colour that the Service selects.")
    blue_spec: PodSpec | None = Field(
        default=None, description="The pods of the Deployment <name>blue-deployment."
    )
    green_spec: PodSpec | None = Field(
        default=None, description="The pods of the Deployment <name>green-deployment."
    )
    promotion: Literal["Immediate", "WhenAvailable", "WhenChecked"] = Field(
        default="Immediate",
        description="Immediate: the Service follows routeTo at once. WhenAvailable: it moves only"
        " when the chosen colour's Deployment is rolled out and available. WhenChecked: and when"
        " all checks have passed for the very template of the colour.",
    )
    preview: bool = Field(
        default=False,
        description="Whether there is a second Service, <name>-preview, for the colour that is not"
        " routed. There always is while promotion is WhenChecked.",
    )
    checks: tuple[Check, ...] | None = Field(
        default=None,
        max_length=MOST_CHECKS,
        description="What must pass with promotion WhenChecked; with Immediate none is run. Delete"
        " the Job of a failed check to run it again.",
        json_schema_extra=list_map("name")
        | rules(
            Rule(
                rule="self.all(c, !has(c.job.spec) || !has(c.job.spec.ttlSecondsAfterFinished))",
                message="a check's Job is kept while its verdict counts: leave out"
                " ttlSecondsAfterFinished",
            ),
        ),
    )
    hold: bool = Field(
        default=False,
        description="Whether a switch waits until promoted names the template; `hedgerow promote`"
        " sets that.",
    )
    promoted: str | None = Field(
        default=None,
        max_length=64,
        description="The template that may be routed although hold is set: status.switch.template.",
    )
    switch: Literal["Cut", "Overlap"] = Field(
        default="Cut",
        description="Cut: the Service selects one colour, then the other. Overlap: in between it"
        " selects both, until the new one's pods are among its endpoints and overlapSeconds have"
        " passed.",
    )
    overlap_seconds: Seconds | None = Field(
        default=None,
        le=LONGEST_WAIT,
        description="How long both colours serve once the new one is among the Service's endpoints;"
        " 10 when left out.",
    )
    bake_seconds: Int32 | None = Field(
        default=None,
        ge=1,
        le=86400,
        description="How long a routed colour is watched: if it is not available for"
        " bakeUnavailableSeconds within that time, the Service goes back once.",
    )
    bake_unavailable_seconds: Seconds | None = Field(
        default=None,
        le=86400,
        description="How long a colour may be unavailable while it is watched; 10 when left out.",
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


class RoutedTemplate(Model):
    """A template of a colour, and since when it counts."""

    phase: str = Field(description="The colour.")
    template: str = Field(
        description="The template: a digest of the spec's, and one of what the Deployment has of"
        " it; empty if only the colour is known."
    )
    since: Time | None = Field(default=None, description="Since when.")


class Switch(Model):
    """A switch from one colour to the other."""

    source: str | None = Field(
        default=None,
        validation_alias="from",
        serialization_alias="from",
        description="The colour that was routed before.",
    )
    to: str = Field(description="The colour that is to be routed.")
    template: str = Field(
        default="", description="The template that is to be routed, as spec.promoted names it."
    )
    since: Time | None = Field(default=None, description="When the phase began.")
    ready_since: Time | None = Field(
        default=None,
        description="Since when the new colour is among the endpoints: of the preview Service"
        " before its checks, of the Service in an overlap.",
    )
    steps: tuple[str, ...] = Field(
        default=(),
        description="What is still to come.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class CheckStatus(Model):
    """What became of a check, and for which template."""

    name: str = Field(description="Name of the check.")
    template: str = Field(description="The template that it was run for, and counts for.")
    verdict: Literal["Running", "Passed", "Failed"] = Field(description="How it ended.")
    job: str = Field(description="The Job that runs it, or ran it.")
    time: Time | None = Field(default=None, description="When that was observed.")
    message: str = Field(default="", description="What it waits for, or why it failed.")
    uid: str | None = Field(
        default=None,
        description="The uid of that Job, as the API server answered hedgerow when it created it:"
        " the verdict of no other Job counts.",
    )
    start_time: Time | None = Field(
        default=None, description="When that Job was created, or left out, by hedgerow's clock."
    )
    attempts: Int32 | None = Field(
        default=None,
        description="How many Jobs there were for it of late; the more, the later the next one.",
    )
    instead_of: str | None = Field(
        default=None,
        description="The uid of an earlier Job that hedgerow may have created or not: it counts for"
        " nothing, and this one has another name.",
    )


class BlueGreenStatus(Status):
    """What was observed; written by the operator alone."""

    # Any string: it says what the Service selects, also when somebody else chose it.
    route_to: str | None = Field(
        default=None,
        description="The colour that the Service really selects; in an overlap the former one.",
    )
    # The following are there only if the spec uses what they tell of.
    phase: SwitchPhase | None = Field(default=None, description="Where a switch stands.")
    switch: Switch | None = Field(default=None, description="The switch that is under way.")
    routed: RoutedTemplate | None = Field(
        default=None, description="What the Service selects alone, or did last."
    )
    previous: RoutedTemplate | None = Field(
        default=None, description="What it selected before: the way back is open to it."
    )
    rejected: RoutedTemplate | None = Field(
        default=None, description="What was routed back from; it is not tried again."
    )
    unavailable_since: Time | None = Field(
        default=None, description="While a colour is watched: since when it is not available."
    )
    checks: tuple[CheckStatus, ...] | None = Field(
        default=None,
        max_length=MOST_CHECKS,
        description="The checks of the template that is to be routed.",
        json_schema_extra=list_map("name"),
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
            Column("Phase", ".status.phase", "Where a switch stands."),
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
