"""The node itself: what the other tests of this directory stand on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from e2e.node.images import PYTHON
from e2e.node.init import POD_BRIDGE
from e2e.node.node import Node
from e2e.pods import container, finished, is_ready, pod, user
from hedgerow.testing.api import Api, Object
from hedgerow.testing.waiting import eventually

pytestmark = pytest.mark.e2e

PORT = 8080
SERVE = ("python3", "-m", "http.server", str(PORT), "--directory", "/usr/share")
ASK = """
import os, sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).status)
"""
WHOAMI = """
import json, os, pathlib, ssl, urllib.error, urllib.request
account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
token = (account / "token").read_text()
trust = ssl.create_default_context(cafile=account / "ca.crt")
address = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}/api/v1/secrets"
request = urllib.request.Request(address.format(**os.environ))
request.add_header("Authorization", f"Bearer {token}")
try:
    urllib.request.urlopen(request, timeout=5, context=trust)
except urllib.error.HTTPError as refused:
    print(json.load(refused)["message"])
"""


class TestPods:
    def test_a_service_is_reached_from_the_node_and_from_other_pods(
        self, node: Node, api: Api, namespace: str
    ):
        address = served(api, namespace)

        assert httpx.get(address, trust_env=False).status_code == 200
        asking = user(container(PYTHON, address, command=("python3", "-c", ASK)))
        assert finished(node, api, pod(namespace, "asks", asking)) == ("Succeeded", "200\n")

    def test_a_pod_is_known_to_the_api_server_as_its_service_account(
        self, node: Node, api: Api, namespace: str
    ):
        asking = user(container(PYTHON, command=("python3", "-c", WHOAMI)))
        asking["automountServiceAccountToken"] = True
        _, log = finished(node, api, pod(namespace, "asks", asking))

        assert f'"system:serviceaccount:{namespace}:default" cannot list resource' in log

    def test_what_restricted_forbids_is_refused(self, api: Api, namespace: str):
        bare = pod(namespace, "bare", {"containers": [{"name": "main", "image": PYTHON}]})

        assert 'violates PodSecurity "restricted' in api.apply(bare, "test").body["message"]

    def test_a_killed_container_is_started_again(self, node: Node, api: Api, namespace: str):
        served(api, namespace)
        web = pod(namespace, "web", {})
        (serving,) = [
            pid for pid in node.pids(api.get(web).must()) if "python3" in command_line(pid)
        ]
        os.kill(serving, signal.SIGKILL)

        eventually(lambda: restarts(api.get(web).must()) == 1, what="a restart")
        eventually(lambda: is_ready(api.get(web).must()), what="ready again")

    def test_the_bridge_keeps_its_address_whatever_is_plugged_into_it(self, node: Node):
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


def restarts(live: Object) -> int:
    return live["status"]["containerStatuses"][0]["restartCount"]


def command_line(pid: int) -> str:
    return " ".join(psutil.Process(pid).cmdline())


def cgroups(name: str) -> list[Path]:
    return [*Path("/sys/fs/cgroup").glob(f"*/{name}"), *Path("/sys/fs/cgroup").glob(name)]
