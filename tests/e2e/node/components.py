"""Components: the servers of a node's cluster, the control plane's as the sandbox starts them."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.node.configuration import PODS, Configuration
from e2e.node.init import ADDRESS
from e2e.node.keeping import Kept
from e2e.node.machine import network_plugins
from hedgerow_testing.sandbox import components, processes
from hedgerow_testing.sandbox.blueprint import (
    API_SERVER,
    CONTROLLERS,
    ETCD,
    PEER,
    Blueprint,
    Options,
)
from hedgerow_testing.sandbox.certificates import SandboxAuthority
from hedgerow_testing.sandbox.components import USERS, write_configuration
from hedgerow_testing.sandbox.directory import Directory
from hedgerow_testing.sandbox.kubeconfig import kubeconfig
from hedgerow_testing.sandbox.ports import choose
from hedgerow_testing.sandbox.processes import Started

NAME = "node-a"
CONTAINERD, KUBELET, KUBE_PROXY = "containerd", "kubelet", "kube-proxy"

_IDENTITIES = {
    KUBELET: (f"system:node:{NAME}", ("system:nodes",)),
    KUBE_PROXY: ("system:kube-proxy", ()),
    "apiserver-to-kubelet": ("kube-apiserver-kubelet-client", ("system:masters",)),
}


@dataclass(frozen=True, slots=True)
class Components:
    """Starts and ends each; `logs` outlive them."""

    kept: Kept
    programs: Mapping[str, Path]
    directory: Directory
    blueprint: Blueprint
    configuration: Configuration
    logs: Path

    @classmethod
    def prepare(cls, directory: Path, kept: Kept, programs: Mapping[str, Path]) -> "Components":
        """Write all that the command lines name; `directory` gets the logs and the audit log."""
        cluster = Directory(kept.directory / "cluster")
        cluster.prepare()
        cluster.furnish()
        blueprint = Blueprint(
            options=Options(controllers=True, audit=directory / "audit.log"),
            version="",
            binaries=programs,
            ports=choose([ETCD, PEER, API_SERVER, *CONTROLLERS]),
            tokens={user: secrets.token_urlsafe(32) for user in USERS},
        )
        write_configuration(cluster, blueprint)
        plugins = network_plugins()
        assert plugins is not None
        authority = cluster.pki / "ca.crt"
        configuration = Configuration(kept.directory / "node", kept.cgroup, authority, plugins)
        configuration.write()
        logs = directory / "logs"
        logs.mkdir()
        made = cls(kept, programs, cluster, blueprint, configuration, logs)
        made._identify()
        return made

    def start(self, name: str) -> None:
        """Start a component and do not wait."""
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.directory.run),
            "GOGC": os.environ.get("GOGC", ""),
        }
        processes.launch(
            [*self.kept.entering(), *self._command(name)],
            record=self.directory.record(name),
            log=self.logs / f"{name}.log",
            environment=environment,
        )

    def kill(self, name: str, number: int) -> None:
        """Send a signal to a component's own process, not to the nsenter before it."""
        started = processes.recorded(self.directory.record(name))
        assert processes.alive(started), f"{name} does not run"
        assert isinstance(started, Started)
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text("ascii")
        os.kill(int(children), number)

    def memory(self) -> dict[str, int]:
        """Return the resident memory of each in bytes."""
        found: dict[str, int] = {}
        for record in self.directory.run.glob("*.json"):
            if started := processes.recorded(record):
                children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
                found[record.stem] = processes.memory(Started(int(children.read_text()), ""))
        return found

    def _identify(self) -> None:
        authority = SandboxAuthority.load(self.directory.pki, "ca")
        for name, (user, groups) in _IDENTITIES.items():
            pair = authority.client(self.directory.pki, name, user, groups)
            credentials = {
                "client-certificate": str(pair.certificate),
                "client-key": str(pair.key),
            }
            kubeconfig(
                self._kubeconfig(name),
                server=self.blueprint.server,
                authority=self.directory.pki / "ca.crt",
                user=credentials,
            )

    def _kubeconfig(self, name: str) -> Path:
        return self.directory.configuration / f"{name}.kubeconfig"

    def _command(self, name: str) -> list[str | Path]:
        if name == CONTAINERD:
            return [name, "--config", self.configuration.containerd]
        if name == API_SERVER:
            plain, *flags = components.command(name, self.directory, self.blueprint)
            overridden = {f"--{flag}=" for flag in self._api_server()}
            kept = [f for f in flags if not str(f).startswith(tuple(overridden))]
            return [plain, *kept, *_listed(self._api_server())]
        if name == CONTROLLERS[0]:
            # A test waits for an autoscaler's answer, not for a production's calm.
            looks = "--horizontal-pod-autoscaler-sync-period=2s"
            return [*components.command(name, self.directory, self.blueprint), looks]
        if name == KUBELET:
            return [self.programs[name], *_listed(self._kubelet())]
        if name == KUBE_PROXY:
            return [self.programs[name], *_listed(self._kube_proxy())]
        return components.command(name, self.directory, self.blueprint)

    def _api_server(self) -> dict[str, object]:
        """Differ from the sandbox's where there is a kubelet, and pods that ask the server."""
        pki = self.directory.pki
        return {
            "bind-address": "0.0.0.0",  # noqa: S104 -- of the node's own network
            "advertise-address": ADDRESS,
            "endpoint-reconciler-type": "lease",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "kubelet-client-certificate": pki / "apiserver-to-kubelet.crt",
            "kubelet-client-key": pki / "apiserver-to-kubelet.key",
            "kubelet-preferred-address-types": "InternalIP",
        }

    def _kubelet(self) -> dict[str, object]:
        root = self.configuration.root
        return {
            "config": self.configuration.kubelet,
            "kubeconfig": self._kubeconfig(KUBELET),
            "root-dir": root / "kubelet",
            "cert-dir": root / "kubelet-pki",
            "node-ip": ADDRESS,
            "hostname-override": NAME,
        }

    def _kube_proxy(self) -> dict[str, object]:
        return {
            "kubeconfig": self._kubeconfig(KUBE_PROXY),
            "hostname-override": NAME,
            "proxy-mode": "iptables",
            "cluster-cidr": PODS,
            # Not to be set outside the machine's first network.
            "conntrack-max-per-core": 0,
            "conntrack-tcp-timeout-established": 0,
            "conntrack-tcp-timeout-close-wait": 0,
        }


def _listed(flags: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]
