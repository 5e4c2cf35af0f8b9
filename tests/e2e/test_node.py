"""The node itself: what the other tests of this directory stand on."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from e2e.node.images import PYTHON
from e2e.node.init import POD_BRIDGE
from e2e.node.node import Node
from e2e.pods import container, is_ready, pod, user
from hedgerow_testing.api import Api
from hedgerow_testing.waiting import eventually

pytestmark = pytest.mark.e2e

PORT = 8080
SERVE = ("python3", "-m", "http.server", str(PORT), "--directory", "/usr/share")


class TestPods:
    def test_the_bridge_keeps_its_address_whatever_is_plugged_into_it(self, node: Node):
        """Fact: the kernel's bridge takes an address of its ports unless it has one."""
        before = hardware(node)
        lower = ("address", "00:00:00:00:00:01", "type", "veth", "peer", "name", "lower-peer")
        node.inside("ip", "link", "add", "lower", *lower)
        try:
            node.inside("ip", "link", "set", "lower", "master", POD_BRIDGE)
            assert hardware(node) == before
        finally:
            node.inside("ip", "link", "delete", "lower")

    def test_a_pod_can_be_cut_off_from_the_api_server_alone(
        self, node: Node, api: Api, namespace: str
    ):
        """Fact: the kernel's packet filter cuts one way of a pod."""
        address = served(api, namespace)
        own = api.get(pod(namespace, "web", {})).must()["status"]["podIP"]
        probe = "import socket; socket.create_connection(('10.0.0.1', 443), timeout=2)"
        asking = ("exec", "-n", namespace, "web", "--", "python3", "-c", probe)

        node.kubectl(*asking)
        with node.cut_off(own):
            with pytest.raises(AssertionError, match=r"TimeoutError|timed out"):
                node.kubectl(*asking)
            assert httpx.get(address, trust_env=False).status_code == 200
        node.kubectl(*asking)


class TestEnd:
    @pytest.mark.usefixtures("needs_node")
    def test_a_killed_test_run_leaves_nothing(self, tmp_path: Path):
        """Fact: the kernel tells the node's processes that the test run is gone."""
        script = (
            "import sys; from pathlib import Path; from e2e.node.keeping import Kept\n"
            "k = Kept(Path(sys.argv[1]), Path(sys.argv[2])); print(k.pid, k.cgroup, flush=True)\n"
            "sys.stdin.read()"
        )
        work = tmp_path / "work"
        command = [sys.executable, "-c", script, str(work), str(tmp_path / "log")]
        tests = Path(__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": str(tests)}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        ) as run:
            assert run.stdout is not None
            pid, cgroup = run.stdout.readline().split()
            entering = ["nsenter", "-t", pid, "-p", "-m", "--", "sleep", "1000"]
            sleeping = subprocess.Popen(entering)
            eventually(lambda: psutil.Process(sleeping.pid).children(), what="a sleeper")
            run.kill()

        sleeping.wait(20)
        eventually(lambda: not work.exists(), what="the directory gone")
        eventually(lambda: not cgroups(cgroup), what="the cgroups gone")
        assert not psutil.pid_exists(int(pid))


def hardware(node: Node) -> str:
    """Return the bridge's hardware address."""
    return node.inside("ip", "-brief", "link", "show", POD_BRIDGE).stdout.split()[2]


def served(api: Api, namespace: str) -> str:
    """Run a web server behind a Service, and give the address once it is ready."""
    probe = {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1}
    declared = user(container(PYTHON, command=SERVE, readinessProbe=probe))
    web = pod(namespace, "web", {**declared, "restartPolicy": "Always"})
    web["metadata"]["labels"] = {"app": "web"}
    port = {"port": 80, "targetPort": PORT, "protocol": "TCP"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": namespace, "name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [port]},
    }
    api.apply(web, "test").must()
    address = f"http://{api.apply(service, 'test').must()['spec']['clusterIP']}"
    eventually(lambda: is_ready(api.get(web).must()), 60, "the web server")
    eventually(lambda: answers(address), 30, "the Service")
    return address


def answers(address: str) -> bool:
    try:
        return httpx.get(address, trust_env=False, timeout=2).is_success
    except httpx.TransportError:
        return False


def cgroups(name: str) -> list[Path]:
    return [*Path("/sys/fs/cgroup").glob(f"*/{name}"), *Path("/sys/fs/cgroup").glob(name)]
