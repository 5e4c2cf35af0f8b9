"""Webhooks on a real API server, as those meet them who create, change and delete resources."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import anyio
import pytest

from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster.admitted import OFTEN, USER, configure, remove, replicas, rules
from support.cluster.cronjobs import GROUP, VERSION, prepare, template
from support.cluster.rights import grant

pytestmark = pytest.mark.cluster

NAME = "hedgerow-admitting"
BAD = {"hedgerow.dev/claim": "nonsense", "hedgerow.dev/yield": "Job/x: a..b"}


@pytest.fixture(scope="module")
def api(sandbox: Sandbox) -> Iterator[Api]:
    one = Api(sandbox.kubeconfig)
    prepare(one)
    yield one
    one.close()


@pytest.fixture(scope="module")
def place(api: Api) -> str:
    return api.namespace("admitted")


@pytest.fixture(scope="module")
def port(sandbox: Sandbox, api: Api, place: str) -> Iterator[int]:
    """A webhook server that is trusted."""
    grant(api, USER, rules(NAME))
    kubeconfig = anyio.run(sandbox.kubeconfig_for, USER)
    with replicas(1, kubeconfig, NAME, place, OFTEN) as (replica,):
        yield replica.port
        remove(api, NAME)


@pytest.fixture
def webhooks(api: Api, place: str, port: int) -> None:
    """Our webhooks are asked in one namespace."""
    admit(api, place, port)


def admit(api: Api, place: str, port: int) -> None:
    """Install the configurations, and wait until they are in force and trusted."""
    configure(api, NAME, place, port)
    probe = cronjob(place, "probe", schedule="bad")

    def in_force() -> bool:
        return create(api, probe).body.get("reason") == "Invalid"

    eventually(in_force, what="the webhooks in force")


def cronjob(place: str, name: str, **more: object) -> Object:
    meta = {"name": name, "namespace": place, **more.pop("metadata", {})}  # type: ignore[dict-item]
    spec = {"schedule": "0 0 30 2 *", "jobTemplate": template(), **more}
    return {"apiVersion": VERSION, "kind": "CronJob", "metadata": meta, "spec": spec}


def create(api: Api, body: Object) -> Reply:
    namespace = body["metadata"]["namespace"]
    return api.raw("POST", f"/apis/{VERSION}/namespaces/{namespace}/cronjobs", json=body)


def causes(reply: Reply) -> dict[str, str]:
    return {cause["field"]: cause["message"] for cause in reply.causes}


class TestRefusing:
    def test_every_error_comes_in_one_answer(self, api: Api, place: str, webhooks: None):
        """Fact: the server passes a webhook's causes on."""
        bad = cronjob(
            place,
            "bad",
            schedule="61 * * * *",
            timeZone="Mars/Olympus",
            metadata={"annotations": BAD},
        )
        refused = create(api, bad)

        assert refused.status == 422
        assert refused.body["reason"] == "Invalid"
        assert refused.body["message"].startswith(
            'admission webhook "cronjob.hedgerow.dev" denied the request:'
            f' CronJob.{GROUP} "bad" is invalid: [spec.schedule: Invalid value: "61 * * * *": '
        )
        assert causes(refused).keys() == {
            "spec.schedule",
            "spec.timeZone",
            "metadata.annotations[hedgerow.dev/claim]",
            "metadata.annotations[hedgerow.dev/yield]",
        }

    def test_kubectl_prints_each_on_a_line(
        self, sandbox: Sandbox, api: Api, place: str, webhooks: None
    ):
        """Fact: kubectl prints a webhook's causes."""
        bad = cronjob(place, "bad", schedule="61 * * * *", timeZone="Mars/Olympus")
        said = kubectl(sandbox, "create", bad)

        assert said.returncode != 0
        assert 'The CronJob "bad" is invalid:' in said.stderr
        assert '* spec.schedule: Invalid value: "61 * * * *": ' in said.stderr
        assert '* spec.timeZone: Invalid value: "Mars/Olympus": ' in said.stderr

    def test_an_idle_term_is_warned_of(
        self, sandbox: Sandbox, api: Api, place: str, webhooks: None
    ):
        """Fact: the server passes a webhook's warnings on, and kubectl prints them."""
        annotated = {"annotations": {"hedgerow.dev/yield": "Pod/*: spec.nodeName"}}
        said = kubectl(sandbox, "create", cronjob(place, "warned", metadata=annotated))

        assert said.returncode == 0, said.stderr
        assert (
            "Warning: metadata.annotations[hedgerow.dev/yield]: Pod is not written" in said.stderr
        )

    def test_elsewhere_nobody_asks(self, api: Api, namespace: str, webhooks: None):
        """Fact: the server minds the namespace selector of a webhook."""
        create(api, cronjob(namespace, "bad", schedule="61 * * * *")).must()


class TestRatcheting:
    def test_what_was_wrong_before_keeps_nobody_from_other_changes(
        self, api: Api, place: str, port: int
    ):
        """Fact: the server shows a webhook the object as it was."""
        remove(api, NAME)
        old = cronjob(place, "old", schedule="61 * * * *", metadata={"annotations": BAD})
        eventually(lambda: create(api, old).ok, what="no webhooks")
        admit(api, place, port)

        label = {"metadata": {"labels": {"team": "a"}, "finalizers": ["example.com/x"]}}
        api.merge(old, label, "user").must()
        api.merge(old, {"metadata": {"finalizers": None}}, "user").must()
        worse = api.merge(old, {"spec": {"schedule": "62 * * * *"}}, "user")
        assert list(causes(worse)) == ["spec.schedule"]
        api.merge(old, {"spec": {"schedule": "@daily"}}, "user").must()
        back = api.merge(old, {"spec": {"schedule": "61 * * * *"}}, "user")
        assert list(causes(back)) == ["spec.schedule"]


class TestAway:
    def test_with_the_operator_down_things_can_be_deleted_and_freed(
        self, api: Api, place: str, port: int
    ):
        """Fact: which writes the server refuses where no webhook answers."""
        remove(api, NAME)
        held = cronjob(place, "held", metadata={"finalizers": ["example.com/hold"]})
        loose = cronjob(place, "loose")
        for one in (held, loose):
            eventually(lambda one=one: create(api, one).ok, what="no webhooks")
        try:
            configure(api, NAME, place, 1)
            away = cronjob(place, "away")
            eventually(
                lambda: "failed calling webhook" in create(api, away).body.get("message", ""),
                what="the webhooks that nobody serves",
            )
            assert not api.merge(loose, {"metadata": {"labels": {"a": "b"}}}, "user").ok

            api.delete(loose).must()
            assert api.get(loose).status == 404
            api.delete(held).must()
            assert api.get(held).must()["metadata"]["deletionTimestamp"]
            status = {"status": {"conditions": []}}
            api.merge(held, status, "user", "status").must()
            api.merge(held, {"metadata": {"finalizers": None}}, "user").must()
            assert api.get(held).status == 404
        finally:
            remove(api, NAME)


def kubectl(sandbox: Sandbox, verb: str, body: Object) -> subprocess.CompletedProcess[str]:
    command = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig), verb, "-f", "-"]
    return subprocess.run(
        command, input=json.dumps(body), capture_output=True, text=True, timeout=60, check=False
    )
