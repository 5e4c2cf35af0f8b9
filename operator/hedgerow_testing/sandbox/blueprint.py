"""Blueprint: a sandbox's options, and the values chosen for it, stored in its directory."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from hedgerow.encoding import decode, encode
from hedgerow_testing.sandbox.files import write
from hedgerow_testing.sandbox.ports import LOOPBACK

ETCD, API_SERVER, KWOK = "etcd", "kube-apiserver", "kwok"
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
PEER = "etcd-peer"
"""The name of etcd's second port, which is not a component."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a sandbox.

    `kubernetes` is a pinned version; "" means the newest. `nodes` is the number of simulated nodes;
    they imply `controllers` (kube-controller-manager and kube-scheduler). `audit` is the file of
    the API server's audit log, which contains request bodies, including Secrets; with `responses`
    the answers to writes too.
    """

    kubernetes: str = ""
    nodes: int = 0
    audit: Path | None = None
    controllers: bool = False
    responses: bool = False

    def components(self) -> tuple[str, ...]:
        """Return the components in the order of their start."""
        controllers = CONTROLLERS if self.controllers or self.nodes else ()
        return (ETCD, API_SERVER, *controllers, *((KWOK,) if self.nodes else ()))


@dataclass(frozen=True, slots=True)
class Blueprint:
    """One cluster: its options, and the binaries, ports and tokens (by user) chosen for it."""

    options: Options
    version: str
    binaries: Mapping[str, Path]
    ports: Mapping[str, int]
    tokens: Mapping[str, str]

    @property
    def server(self) -> str:
        """Return the API server's address."""
        return f"https://{LOOPBACK}:{self.ports[API_SERVER]}"

    @property
    def components(self) -> tuple[str, ...]:
        """Return the components in the order of their start."""
        return self.options.components()

    def differences(self, wanted: Options) -> list[str]:
        """Return how this cluster falls short of the wanted options; it may have more."""
        have = self.options
        checks = {
            f"Kubernetes {self.version}": f"{self.version}.".startswith(
                wanted.kubernetes and f"{wanted.kubernetes.removeprefix('v')}."
            ),
            f"{have.nodes} nodes": wanted.nodes <= have.nodes,
            "no controllers": set(wanted.components()) <= set(self.components),
            f"audit log {have.audit or 'off'}": wanted.audit in (None, have.audit),
            "no answers in its audit log": wanted.responses <= have.responses,
        }
        return [what for what, fits in checks.items() if not fits]

    def save(self, path: Path) -> None:
        """Write it to a file; it is private because of the tokens."""
        write(path, encode(self, indent=2))

    @staticmethod
    def load(path: Path) -> "Blueprint | None":
        """Return a stored blueprint; None if there is none or it cannot be read."""
        try:
            return _BLUEPRINT.validate_python(decode(path.read_bytes()))
        except (OSError, ValueError):
            return None


_BLUEPRINT = TypeAdapter(Blueprint)
