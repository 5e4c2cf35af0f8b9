"""Node: a real one with its own control plane, in namespaces of its own that take all along.

There is no DNS in the cluster, no registry, and no network policy is enforced.
"""

import socket
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from pydantic_core import from_json

from e2e.node import network
from e2e.node.components import CONTAINERD, KUBE_PROXY, KUBELET, NAME, Components
from e2e.node.configuration import SOCKET
from e2e.node.keeping import Kept
from hedgerow_testing.api import Api
from hedgerow_testing.audit_log import AuditLog
from hedgerow_testing.sandbox import identities
from hedgerow_testing.sandbox.blueprint import API_SERVER, CONTROLLERS, ETCD
from hedgerow_testing.sandbox.certificates import SERVICE_IP
from hedgerow_testing.waiting import eventually

START_TIMEOUT = 90.0
_CTR = ("ctr", "--address", SOCKET, "--namespace", "k8s.io")


class Node:
    """A cluster of one node below `directory`; it ends with `down`, or with this program."""

    def __init__(self, directory: Path, programs: Mapping[str, Path]) -> None:
        self.directory = directory
        self.audit = AuditLog(directory / "audit.log")
        self._programs = programs
        self._up: Components | None = None

    @property
    def components(self) -> Components:
        """The servers, to be killed and started again."""
        assert self._up is not None, "the node is not up"
        return self._up

    @property
    def kubeconfig(self) -> Path:
        """The administrator's; of use on the node's network only."""
        return self.components.directory.kubeconfig

    def up(self, images: Path) -> None:
        """Bring everything up, load the images, and wait until the node is Ready."""
        self.directory.mkdir(parents=True, exist_ok=True)
        kept = Kept(self.directory / "work", self.directory / "keeper.log")
        try:
            self._up = Components.prepare(self.directory, kept, self._programs)
            with self.network():
                self._raise(images)
        except BaseException:
            kept.release()
            raise

    def down(self) -> None:
        """End everything and remove it, but for the logs."""
        if self._up is not None:
            self._up.kept.release()
            self._up = None

    @contextmanager
    def network(self) -> Generator[None]:
        """Stand on the node: its API server, pods and Services are within reach of this thread."""
        with network.inside(self.components.kept.pid):
            yield

    def inside(
        self, *command: str | Path, within: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the node's namespaces, as root."""
        words = [*self.components.kept.entering(), *map(str, command)]
        return _run(words, within, check)

    def kubectl(self, *arguments: str, given: str = "", check: bool = True) -> str:
        """Run kubectl as the administrator, `given` on its input, and give what it says."""
        kubectl = str(self._programs["kubectl"])
        words = [kubectl, "--kubeconfig", str(self.kubeconfig), *arguments]
        with self.network():
            return _run(words, START_TIMEOUT + 30, check, given).stdout

    def get(self, *arguments: str) -> Any:
        """Return what `kubectl get` finds, as JSON."""
        return from_json(self.kubectl("get", *arguments, "--output=json"))

    def load(self, archive: Path) -> None:
        """Make the images of an archive known to the node, under the names in it."""
        self.inside(*_CTR, "images", "import", "--digests=false", archive, within=120)

    def name(self, image: str, also: str) -> None:
        """Make a loaded image known under another name too, in place of the one that had it."""
        self.inside(*_CTR, "images", "tag", "--force", image, also)

    async def kubeconfig_for(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a ServiceAccount's token; to be awaited on the node's network."""
        up = self.components
        return await identities.service_account(up.directory, up.blueprint, namespace, name, 3600)

    def pids(self, pod: Mapping[str, Any]) -> list[int]:
        """Return the machine's pids of a pod's processes, the pause process's among them."""
        mark = f"/pod{pod['metadata']['uid']}/"
        return [int(p.name) for p in Path("/proc").glob("[1-9]*") if mark in _cgroups(p)]

    @contextmanager
    def cut_off(self, address: str) -> Generator[None]:
        """Drop all that a pod's address and the API server have to say to each other."""
        port = str(self.components.blueprint.ports[API_SERVER])
        rule = ("-s", address, "-p", "tcp", "--dport", port, "-j", "DROP")
        self.inside("iptables", "-w", "-I", "INPUT", *rule)
        try:
            yield
        finally:
            self.inside("iptables", "-w", "-D", "INPUT", *rule)

    def _raise(self, images: Path) -> None:
        up = self.components
        for name in (ETCD, CONTAINERD, API_SERVER):
            up.start(name)
        eventually(self._containerd_answers, START_TIMEOUT, "containerd")
        self.load(images)
        up.start(KUBELET)
        api = Api(self.kubeconfig)
        eventually(lambda: _answers(api), START_TIMEOUT, "the API server")
        api.close()
        for name in (*CONTROLLERS, KUBE_PROXY):
            up.start(name)
        patience = f"--timeout={START_TIMEOUT:.0f}s"
        self.kubectl("wait", "--for=create", f"node/{NAME}", patience)
        self.kubectl("wait", "--for=condition=Ready", f"node/{NAME}", patience)
        self.kubectl("wait", "--for=create", "serviceaccount/default", patience)
        with self.network():
            eventually(_is_served_by_kube_proxy, START_TIMEOUT, "kube-proxy's first rules")

    def _containerd_answers(self) -> bool:
        return self.inside(*_CTR, "version", check=False).returncode == 0


def _answers(api: Api) -> bool:
    try:
        return api.raw("GET", "/readyz").ok
    except httpx.TransportError:
        return False


def _is_served_by_kube_proxy() -> bool:
    try:
        socket.create_connection((SERVICE_IP, 443), timeout=2).close()
    except OSError:
        return False
    return True


def _cgroups(process: Path) -> str:
    try:
        return (process / "cgroup").read_text("utf-8")
    except OSError:
        return ""


def _run(
    words: list[str], within: float, check: bool, given: str = ""
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        words, input=given, capture_output=True, text=True, check=False, timeout=within
    )
    told = f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}"
    assert not check or done.returncode == 0, told
    return done
