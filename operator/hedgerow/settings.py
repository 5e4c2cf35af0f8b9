"""Settings: all settings of `hedgerow run`: flags, environment, defaults, limits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from hedgerow.kube.pod import in_pod
from hedgerow.objects import PROGRAM, Installation, variable_prefix
from hedgerow.runtime.logs import LogFormat
from hedgerow.schedule.durations import nanoseconds
from hedgerow.serving.httpserver.addresses import Address
from hedgerow.shard import Shard, ends_as_shard

if TYPE_CHECKING:
    from collections.abc import Mapping


LOOPBACK = "127.0.0.1"
_SUFFIXES = ("", "Ki", "Mi", "Gi")
_QUANTITY = re.compile(rf"([0-9]+)({'|'.join(_SUFFIXES)})")
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


@dataclass(frozen=True, slots=True)
class Flag:
    """The command-line option of a setting; `takes` is shown for an invalid value."""

    group: str
    name: str
    help: str
    metavar: str = ""
    takes: str = ""
    default: str = ""
    """The default as text, if the value does not explain itself."""
    environment: str = ""
    """The environment variable; if empty, it is the program's prefix and the name in capitals."""

    @property
    def long(self) -> str:
        """The long name, without the one-letter form."""
        return self.name.split("/")[-1]

    def variable(self, program: str = PROGRAM) -> str:
        """Return the environment variable."""
        name = self.long[2:].replace("-", "_").upper()
        return self.environment or f"{variable_prefix(program)}{name}"


def _seconds(value: Any) -> Any:
    """Return the seconds of a duration as Go writes it; a number already is in seconds."""
    return nanoseconds(value) / 1e9 if isinstance(value, str) else value


def _parts(value: Any) -> Any:
    """Return names, split at commas; they may come from options or the environment."""
    given = (value,) if isinstance(value, str) else value
    return tuple(
        part for text in given for part in str(text).split(",") if part or "," not in str(text)
    )


def _bytes(value: Any) -> Any:
    """Return a number of bytes from a Kubernetes quantity, with or without a binary suffix."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) * 1024 ** _SUFFIXES.index(match[2]) if match else value


def _address(text: str) -> str:
    Address.parse(text)
    return text


def bound(port: int) -> str:
    """Return the default address to listen on: in a pod all addresses, elsewhere loopback."""
    return f":{port}" if in_pod() else f"{LOOPBACK}:{port}"


NAMESPACE = "a namespace's name: a-z, 0-9 and '-', 63 characters at most"
BINDS = 'an address to listen on, such as :8080 or 127.0.0.1:8080; "0" turns it off'
Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
Binding = Annotated[str, AfterValidator(_address)]
Label = Annotated[str, StringConstraints(pattern=DNS_LABEL, max_length=63)]
CommaSeparated = BeforeValidator(_parts)
SIZE = "a quantity of bytes of at least 16Mi, such as 256Mi or 1Gi"
Size = Annotated[int, BeforeValidator(_bytes), Field(ge=16 * 1024**2)]


def readable(seconds: float) -> str:
    """Return a duration as Go writes it, in its largest whole unit."""
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


SYSTEM_NAMESPACE = Installation().system_namespace

RUNS, AVAILABLE, SERVES, CONNECTS = (
    "What it runs",
    "High availability",
    "What it serves",
    "Connection and logs",
)


class Settings(BaseModel):
    """How one operator process runs; no namespaces mean all namespaces.

    `program` is its name: field managers, the Lease and all else that is the operator's own is
    named after it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    program: Annotated[str, AfterValidator(lambda name: Installation(program=name).program)] = (
        PROGRAM
    )

    controllers: Annotated[
        tuple[str, ...],
        CommaSeparated,
        Flag(
            RUNS,
            "--controllers",
            "Run these controllers only; commas or repeated.",
            metavar="NAME,…",
            default="those that are not opt-in",
        ),
    ] = ()
    namespaces: Annotated[
        tuple[Label, ...],
        CommaSeparated,
        Flag(
            RUNS,
            "-n/--namespace",
            "Look at these namespaces only; commas or repeated. Needs no cluster-wide permission.",
            metavar="NAMESPACE,…",
            takes=NAMESPACE,
            default="all",
        ),
    ] = ()
    instance: Annotated[
        str,
        StringConstraints(pattern=rf"^$|{DNS_LABEL}", max_length=20),
        Flag(
            RUNS,
            "--instance",
            "The name of this installation, if the cluster has several. The field managers, the"
            " label on children and the Lease contain the name. Give installations different"
            " namespaces or controllers: on one resource they report each other's fields.",
            metavar="NAME",
            takes="a short name: a-z, 0-9 and '-', 20 characters at most",
            default="none",
        ),
    ] = ""
    system_namespace: Annotated[
        Label,
        Flag(
            RUNS,
            "--system-namespace",
            "Namespace of the operator's own Lease and Secret.",
            metavar="NAMESPACE",
            takes=NAMESPACE,
        ),
    ] = SYSTEM_NAMESPACE
    memory_budget: Annotated[
        Size | None,
        Flag(
            RUNS,
            "--memory-budget",
            "The most bytes that all cached objects together may take. Beyond that the largest ones"
            " are left out, and their resources are Stalled.",
            metavar="QUANTITY",
            takes=SIZE,
            default="what the container's limit leaves, 192Mi of 512Mi; 1Gi without one",
        ),
    ] = None
    leader_elect: Annotated[
        bool,
        Flag(
            AVAILABLE,
            "--leader-elect",
            "Let one of several replicas work; the others stand by. Without it, the operator does"
            " not start beside a leader of its installation, but goes on if one starts later.",
        ),
    ] = False
    shard: Annotated[
        str,
        AfterValidator(lambda text: text and str(Shard.parse(text))),
        Flag(
            AVAILABLE,
            "--shard",
            "Serve a part of the namespaces only: 2/8 is that with number 2 of the parts 0 to 7, by"
            " a hash of their names. Part 0 also has what is in no namespace. A shard is elected by"
            " a Lease of its own, and waits while operators of this installation work that divide"
            " the namespaces otherwise.",
            metavar="I/N",
            takes="a shard, counted from 0, and how many there are, such as 2/8",
            default="all namespaces",
        ),
    ] = ""
    lease_duration: Annotated[
        Duration,
        Field(ge=1),  # others look at it some ten times in that time
        Flag(
            AVAILABLE,
            "--lease-duration",
            "How long others wait for a leader that does not renew its Lease. It renews it every"
            " 2/15 of that time, and works for 2/3 of it without having renewed it.",
            metavar="DURATION",
            takes="a duration of at least 1s, such as 15s",
        ),
    ] = 15.0

    metrics_bind_address: Annotated[
        Binding,
        Flag(
            SERVES,
            "--metrics-bind-address",
            'Where /metrics is served; "0" for nowhere.',
            metavar="ADDRESS",
            takes=BINDS,
            default=f"{LOOPBACK}:8080 or a free port, in a pod :8080",
        ),
    ] = Field(default_factory=partial(bound, 8080))
    metrics_secure: Annotated[
        bool,
        Flag(
            SERVES,
            "--metrics-secure",
            "Serve /metrics over TLS, to clients that the cluster authenticates and authorizes.",
        ),
    ] = False
    health_probe_bind_address: Annotated[
        Binding,
        Flag(
            SERVES,
            "--health-probe-bind-address",
            'Where /healthz and /readyz are served; "0" for nowhere.',
            metavar="ADDRESS",
            takes=BINDS,
            default=f"{LOOPBACK}:8081 or a free port, in a pod :8081",
        ),
    ] = Field(default_factory=partial(bound, 8081))
    webhooks: Annotated[
        bool,
        Flag(
            SERVES,
            "--webhooks",
            "Serve the admission webhooks.",
            environment="ENABLE_WEBHOOKS",
        ),
    ] = False
    webhook_bind_address: Annotated[
        Binding,
        Flag(
            SERVES,
            "--webhook-bind-address",
            "Where the admission webhooks are served.",
            metavar="ADDRESS",
            takes=BINDS,
            default=f"{LOOPBACK}:9443, in a pod :9443",
        ),
    ] = Field(default_factory=partial(bound, 9443))
    certificate_directory: Annotated[
        str | None,
        Flag(
            SERVES,
            "--certificate-directory",
            "Serve the tls.crt and tls.key of this directory, as cert-manager keeps them there.",
            metavar="DIRECTORY",
            default="hedgerow makes its own",
        ),
    ] = None

    kubeconfig: Annotated[
        str | None,
        Flag(
            CONNECTS,
            "--kubeconfig",
            "Kubeconfig to use.",
            metavar="FILE",
            default="$KUBECONFIG, ~/.kube/config, the pod's own",
        ),
    ] = None
    context: Annotated[
        str | None,
        Flag(CONNECTS, "--context", "Context to use.", metavar="NAME", default="current"),
    ] = None
    log_format: Annotated[
        LogFormat,
        Flag(
            CONNECTS,
            "--log-format",
            "Log for people or as JSON lines; auto: for people on a terminal.",
        ),
    ] = "auto"
    options: dict[str, dict[str, str]] = Field(default_factory=dict)
    """The options of single controllers, as text, by controller and name."""
    debug: bool = False

    @model_validator(mode="before")
    @classmethod
    def _at_home(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Have a program in a namespace of its own, and a shard elected, if not told otherwise."""
        if "program" in given:
            given = {"system_namespace": f"{given['program']}-system"} | given
        return {"leader_elect": True} | given if given.get("shard") else given

    @property
    def installation(self) -> Installation:
        """The installation whose marks its writes, children and own objects have."""
        return Installation(self.instance, self.program)

    @property
    def part(self) -> Shard | None:
        """The shard that it serves; None if it serves all namespaces."""
        return Shard.parse(self.shard) if self.shard else None

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Check the settings that depend on each other."""
        if self.shard and not self.leader_elect:
            raise ValueError("--shard is elected: it cannot be without --leader-elect")
        if ends_as_shard(self.instance):
            raise ValueError(
                f"--instance {self.instance}: its Lease would have the name of that of a shard of"
                " another installation"
            )
        if self.webhooks and Address.parse(self.webhook_bind_address) is None:
            raise ValueError('--webhooks needs a --webhook-bind-address, not "0"')
        return self


def flags() -> Mapping[str, tuple[Any, Flag]]:
    """Return the type and flag of each setting that has a flag, by the setting's name."""
    return {
        name: (info.annotation, flag)
        for name, info in Settings.model_fields.items()
        for flag in info.metadata
        if isinstance(flag, Flag)
    }


def default(name: str) -> str:
    """Return a setting's default as a user would write it."""
    value = Settings.model_fields[name].default
    kind, flag = flags()[name]
    if flag.default:
        return flag.default
    if isinstance(value, bool):
        return "on" if value else "off"
    return readable(value) if kind is float else str(value)
