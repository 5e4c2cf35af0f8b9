"""Settings: everything `hedgerow run` can be told: flags, environment, defaults and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from hedgerow.core.cron.durations import nanoseconds
from hedgerow.runtime.logs import Format
from hedgerow.serving.addresses import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
SYSTEM_NAMESPACE = "hedgerow-system"
JITTER = 1.2
"""client-go's: a renewal is tried again after up to this many retry periods."""

RUNS, AVAILABLE, SERVES, CONNECTS = (
    "What it runs",
    "High availability",
    "What it serves",
    "Where it connects, and how it tells",
)


@dataclass(frozen=True, slots=True)
class Flag:
    """How a setting is told; `takes` is said to whoever told it nonsense."""

    group: str
    name: str
    help: str
    metavar: str = ""
    takes: str = ""
    default: str = ""
    """What the default means, where its value does not tell."""
    environment: str = ""
    """HEDGEROW_ and the name in capitals, where it is empty."""

    @property
    def long(self) -> str:
        """The name in full, where there is a letter for it too."""
        return self.name.split("/")[-1]

    @property
    def variable(self) -> str:
        """The environment variable."""
        return self.environment or f"HEDGEROW_{self.long[2:].replace('-', '_').upper()}"


def _seconds(value: Any) -> Any:
    """Read a duration as Go writes it; a number counts seconds."""
    return nanoseconds(value) / 1e9 if isinstance(value, str) else value


def _parts(value: Any) -> Any:
    """Part names at commas, wherever they were given."""
    given = (value,) if isinstance(value, str) else value
    return tuple(
        part for text in given for part in str(text).split(",") if part or "," not in str(text)
    )


def _address(text: str) -> str:
    Address.parse(text)
    return text


NAMESPACE = "a namespace's name: a-z, 0-9 and '-', 63 characters at most"
DURATION = "a positive duration, such as 15s, 1m30s or 2160h"
BINDS = 'an address to listen on, such as :8080 or 127.0.0.1:8080; "0" turns it off'
Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
Binding = Annotated[str, AfterValidator(_address)]
Label = Annotated[str, StringConstraints(pattern=DNS_LABEL, max_length=63)]
Names = BeforeValidator(_parts)


class Settings(BaseModel):
    """How one operator process runs; an empty tuple of namespaces means all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    controllers: Annotated[
        tuple[str, ...],
        Names,
        Flag(
            RUNS,
            "--controllers",
            "Run these controllers only; commas or repeated.",
            metavar="NAME,…",
            default="all",
        ),
    ] = ()
    namespaces: Annotated[
        tuple[Label, ...],
        Names,
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
            "Tell this installation from another in the same cluster: it becomes part of the field"
            " managers, of the label on children and of the Lease.",
            metavar="NAME",
            takes="a short name: a-z, 0-9 and '-', 20 characters at most",
            default="none",
        ),
    ] = ""
    system_namespace: Annotated[
        Label | None,
        Flag(
            RUNS,
            "--system-namespace",
            "Namespace of the operator's own Lease and Secret.",
            metavar="NAMESPACE",
            takes=NAMESPACE,
            default=f"the pod's own, else {SYSTEM_NAMESPACE}",
        ),
    ] = None
    grace_period: Annotated[
        Duration,
        Flag(
            RUNS,
            "--grace-period",
            "On SIGTERM, let the passes under way take that long.",
            metavar="DURATION",
            takes=DURATION,
        ),
    ] = 20.0

    leader_elect: Annotated[
        bool,
        Flag(
            AVAILABLE,
            "--leader-elect",
            "Of several replicas let one work; the others stand by. Without it, an operator that"
            " is at work in the cluster already is not joined.",
        ),
    ] = False
    lease_duration: Annotated[
        Duration,
        Flag(
            AVAILABLE,
            "--lease-duration",
            "How long others wait for a leader that is not heard of.",
            metavar="DURATION",
            takes=DURATION,
        ),
    ] = 15.0
    renew_deadline: Annotated[
        Duration,
        Flag(
            AVAILABLE,
            "--renew-deadline",
            "How long a leader works on without having renewed its Lease.",
            metavar="DURATION",
            takes=DURATION,
        ),
    ] = 10.0
    retry_period: Annotated[
        Duration,
        Flag(
            AVAILABLE,
            "--retry-period",
            "How long to wait between two tries to get or to renew the Lease.",
            metavar="DURATION",
            takes=DURATION,
        ),
    ] = 2.0

    metrics_bind_address: Annotated[
        Binding,
        Flag(
            SERVES,
            "--metrics-bind-address",
            'Where /metrics is served; "0" for nowhere.',
            metavar="ADDRESS",
            takes=BINDS,
        ),
    ] = ":8080"
    metrics_secure: Annotated[
        bool,
        Flag(
            SERVES,
            "--metrics-secure",
            "Serve /metrics over TLS, to those whom the cluster knows and lets read it.",
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
        ),
    ] = ":8081"
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
        ),
    ] = ":9443"
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
    certificate_validity: Annotated[
        Duration,
        Flag(
            SERVES,
            "--certificate-validity",
            "How long a serving certificate of hedgerow's own is valid.",
            metavar="DURATION",
            takes=DURATION,
        ),
    ] = 90 * 24 * 3600.0

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
        Format,
        Flag(
            CONNECTS,
            "--log-format",
            "Log for people or as JSON lines; auto: for people on a terminal.",
        ),
    ] = "auto"
    debug: bool = False

    @model_validator(mode="after")
    def _in_time(self) -> Self:
        """Hold client-go's rule, or a leader may be replaced while it still writes."""
        if not self.lease_duration > self.renew_deadline > JITTER * self.retry_period:
            raise ValueError(
                "--lease-duration must be longer than --renew-deadline, and that longer than"
                f" {JITTER} times --retry-period; not {readable(self.lease_duration)},"
                f" {readable(self.renew_deadline)} and {readable(self.retry_period)}"
            )
        if self.webhooks and Address.parse(self.webhook_bind_address) is None:
            raise ValueError('--webhooks needs a --webhook-bind-address, not "0"')
        return self


def flags() -> Mapping[str, tuple[Any, Flag]]:
    """Give each setting's type and flag by its name; what has no flag is left out."""
    return {
        name: (info.annotation, flag)
        for name, info in Settings.model_fields.items()
        for flag in info.metadata
        if isinstance(flag, Flag)
    }


def default(name: str) -> str:
    """Tell a setting's default as a user would give it."""
    value = Settings.model_fields[name].default
    kind, flag = flags()[name]
    if flag.default:
        return flag.default
    if isinstance(value, bool):
        return "on" if value else "off"
    return readable(value) if kind is float else str(value)


def readable(seconds: float) -> str:
    """Write a duration as Go would, in its largest whole unit."""
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def choices(name: str) -> tuple[str, ...]:
    """Give the only values that a setting may have; none where it is free."""
    kind = flags()[name][0]
    return tuple(value for value in get_args(kind) if isinstance(value, str))
