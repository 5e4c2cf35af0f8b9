"""A start in a pod before there is an API server: it waits, and works once there is one."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from hedgerow_testing.process import OperatorProcess
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.sandbox.ports import choose
from hedgerow_testing.waiting import eventually
from support.cluster.proxy import Proxy
from support.operator.running import Operator

pytestmark = pytest.mark.cluster


def reading(port: int) -> str:
    """Return what the readiness probe is answered; empty if there is no answer."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").text
    except httpx.HTTPError:
        return ""


@pytest.mark.usefixtures("api")  # it has no custom resources to watch otherwise
def test_it_is_alive_and_not_ready_until_the_api_server_comes(
    sandbox: Sandbox, namespace: str, tmp_path: Path
):
    """Fact: a port at which nobody listens, and then a real server."""
    ports = choose(["api", "health"])
    config = yaml.safe_load(sandbox.kubeconfig.read_text("utf-8"))
    cluster = config["clusters"][0]["cluster"]
    authority = sandbox.kubeconfig.parent / cluster["certificate-authority"]
    cluster |= {
        "server": f"https://127.0.0.1:{ports['api']}",
        "certificate-authority": str(authority),
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config), "utf-8")
    operator = Operator(
        path,
        tmp_path / "log",
        *("--namespace", namespace),
        f"--health-probe-bind-address=127.0.0.1:{ports['health']}",
        KUBERNETES_SERVICE_HOST="10.0.0.1",
    )
    try:
        OperatorProcess.start(operator, lambda: operator.logged("waiting for the API server"))
        unready = reading(ports["health"])
        alive = httpx.get(f"http://127.0.0.1:{ports['health']}/healthz")
        with Proxy(urlsplit(sandbox.server).port or 443, at=ports["api"]):
            eventually(lambda: reading(ports["health"]) == "ok", 60, "it is ready")
            code = operator.stop()
    finally:
        operator.kill()

    assert "[-]api-server failed: the API server does not answer: GET /version" in unready
    assert (alive.status_code, alive.text) == (200, "ok")
    assert code == 0
    events = [json.loads(line)["event"] for line in operator.log.read_text("utf-8").splitlines()]
    assert events[:2] == ["waiting for the API server", "the API server answers"]
    assert events.count("started") == 1
    assert events[-1] == "stopped"
