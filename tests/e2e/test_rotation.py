"""Rotation: certificates and authorities replaced while the webhooks are asked all the time."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from e2e.deployment import NAME, NAMESPACE, Deployment
from e2e.load import Answers, Load, asking, cronjob
from e2e.node.node import Node
from e2e.serving import SECRET, Certificates, connecting, stored
from hedgerow.testing.api import Api
from hedgerow.testing.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(550)]

VALIDITY = timedelta(seconds=30)
ROTATIONS = 4
AUTHORITIES = 2
SETTING = "HEDGEROW_CERTIFICATE_VALIDITY"
SOON = 180.0


@pytest.fixture
def hurried(node: Node, api: Api, deployment: Deployment, namespace: str) -> Iterator[Deployment]:
    """The operator, the next certificates of which are valid for half a minute."""
    configure(deployment, f"{SETTING}={VALIDITY.seconds}s")
    yield deployment
    configure(deployment, f"{SETTING}-")
    asked = cronjob(namespace)
    eventually(lambda: _is_long(api), SOON, "a certificate that lasts")
    eventually(lambda: api.apply(asked, "user", dry_run=True).ok, SOON, "webhooks that answer")
    deployment.ready()


class TestRotation:
    def test_no_request_is_refused_meanwhile(
        self, node: Node, api: Api, hurried: Deployment, namespace: str
    ):
        seen, judged, connected = Certificates(hurried), Answers(), Answers()
        before = restarts(hurried)
        seen.look()
        known, first = set(seen.authorities), dict(seen.served)
        with (
            Load(node, api, namespace) as load,
            asking(node, namespace, judged),
            connecting(node, api, connected),
        ):
            load.goes_on()
            node.kubectl("delete", "secret", "-n", NAMESPACE, SECRET)

            def rotated() -> bool:
                agree = seen.look()
                often = all(len(serials) > ROTATIONS for serials in seen.served.values())
                return agree and often and len(seen.authorities - known) >= AUTHORITIES

            eventually(rotated, SOON, "certificates and authorities rotated")
            load.goes_on()
        load.carried_out()

        print(f"{load.answers.served} changes, {judged.served} dry runs, {connected.served} new")
        print(f"connections; {[len(s) for s in seen.served.values()]} certificates of each pod,")
        print(f"{len(seen.authorities - known)} new authorities")
        assert not load.answers.failed
        assert not judged.failed
        assert not connected.failed
        assert seen.served.keys() == first.keys()
        assert restarts(hurried) == before


def configure(deployment: Deployment, setting: str) -> None:
    """Change a setting of the operator as a user may, and wait for the rollout."""
    node = deployment.node
    node.kubectl("set", "env", "-n", NAMESPACE, f"deployment/{NAME}", setting)
    deployment.ready()


def restarts(deployment: Deployment) -> dict[str, int]:
    """Return each pod's count of restarts."""
    found = deployment.pods()
    return {
        p["metadata"]["uid"]: p["status"]["containerStatuses"][0]["restartCount"] for p in found
    }


def _is_long(api: Api) -> bool:
    certificate = stored(api)
    if certificate is None:
        return False
    lasts = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return lasts > timedelta(days=1)
