"""Where a namespace allows claims: what the admission policy then lets pass, and at what size."""

from __future__ import annotations

import copy

import pytest

from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.waiting import eventually
from support.cluster.policies import (
    CLAIMS,
    MANAGER,
    TAKINGS,
    Taking,
    entries,
    manifest,
    must_refuse,
    settings,
)
from support.objects.definitions import definition, of
from support.objects.workloads import RICH_DEPLOYMENT

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]


@pytest.fixture
def open_namespace(us: Api, admin: Api, namespace: str) -> str:
    """A namespace in which claims are allowed, as soon as admission knows of it."""
    label(admin, namespace, "true")
    admin.apply(settings(namespace, probe="1"), "other").must()
    wanted = settings(namespace, probe="2")
    eventually(lambda: us.apply(wanted, MANAGER, force=True, dry_run=True).ok, what="claims")
    admin.delete(wanted).must()
    return namespace


def label(admin: Api, namespace: str, value: str | None) -> None:
    target = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    admin.merge(target, {"metadata": {"labels": {CLAIMS: value}}}, "kubectl-label").must()


class TestClaims:
    def test_a_claim_takes_the_field(self, us: Api, admin: Api, open_namespace: str):
        """Fact: the server shows a policy the labels of the namespace."""
        admin.apply(settings(open_namespace, theirs="1", more="1"), "other").must()

        live = us.apply(settings(open_namespace, theirs="2"), MANAGER, force=True).must()

        assert live["data"] == {"theirs": "2", "more": "1"}
        assert {e["manager"] for e in entries(live)} == {MANAGER, "other"}

    def test_it_ends_with_the_label(self, us: Api, admin: Api, open_namespace: str):
        """Fact: the server shows a policy a changed label within seconds."""
        admin.apply(settings(open_namespace, theirs="1"), "other").must()
        wanted = settings(open_namespace, theirs="2")
        label(admin, open_namespace, "yes")

        def claimed() -> Reply:
            return us.apply(wanted, MANAGER, force=True, dry_run=True)

        eventually(lambda: not claimed().ok)
        must_refuse(claimed(), "other (Apply)")

    @pytest.mark.parametrize("taking", [TAKINGS[0], TAKINGS[-2]], ids=lambda taking: taking.name)
    def test_it_is_an_apply(self, us: Api, admin: Api, open_namespace: str, taking: Taking):
        """Fact: the server tells a policy how a claim was written."""
        before = admin.apply(settings(open_namespace, ours="1", theirs="1"), "other").must()

        must_refuse(taking.send(us, before), taking.word)

    def test_a_selector_is_not_claimed_and_what_is_beside_it_is(
        self, us: Api, admin: Api, open_namespace: str
    ):
        """Fact: the server's CEL compares a selector with the one before."""

        def service(colour: str, port: str) -> Object:
            ports = [{"name": port, "port": 80, "protocol": "TCP"}]
            spec = {"selector": {"colour": colour}, "ports": ports}
            return manifest("Service", open_namespace, spec=spec)

        admin.apply(service("blue", "http"), "other").must()

        taken = us.apply(service("green", "http"), MANAGER, force=True)
        must_refuse(taken, "owner references or a selector")
        us.apply(service("blue", "web"), MANAGER, force=True).must()

    def test_an_owner_reference_is_not_claimed(self, us: Api, admin: Api, open_namespace: str):
        """Fact: the server's CEL compares owner references with those before."""
        uid = admin.apply(settings(open_namespace), "other").must()["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": uid}

        def owned(*, controller: bool) -> Object:
            owned = settings(open_namespace)
            owned["metadata"]["name"] = "owned"
            owned["metadata"]["ownerReferences"] = [{**owner, "controller": controller}]
            return owned

        admin.apply(owned(controller=False), "other").must()

        taken = us.apply(owned(controller=True), MANAGER, force=True)

        must_refuse(taken, "owner references or a selector")


class TestSize:
    def test_a_large_deployment_of_many_managers_is_judged(
        self, us: Api, admin: Api, namespace: str
    ):
        """Fact: the server bounds what an evaluation may cost."""
        wanted = copy.deepcopy(RICH_DEPLOYMENT.manifest)
        wanted["metadata"].update(name="one", namespace=namespace)
        wanted["spec"] = us.apply(wanted, MANAGER).must()["spec"]
        us.apply(wanted, MANAGER).must()
        for number in range(10):
            admin.apply(wanted, f"other-{number}").must()

        passed = us.apply({**wanted, "spec": {**wanted["spec"]}}, MANAGER).must()
        refused = us.apply(
            {**wanted, "spec": {**wanted["spec"], "replicas": 9}}, MANAGER, force=True
        )

        assert len(entries(passed)) == 11
        must_refuse(refused, *(f"other-{number} (Apply)" for number in range(10)))

    def test_a_definition_of_700_kilobytes_is_judged(self, us: Api, admin: Api):
        """Fact: the server's bound on costs suffices for the largest objects."""
        wanted = large_definition("a" * 250)
        try:
            us.apply(wanted, MANAGER).must()
            us.apply(large_definition("b" * 250), MANAGER).must()
            admin.apply(large_definition("c" * 250), "other", force=True).must()

            must_refuse(us.apply(wanted, MANAGER, force=True), "other (Apply)")
        finally:
            forget(admin, wanted)


class TestDefinitions:
    def test_the_status_passes_after_a_field_of_the_spec_became_atomic(
        self, us: Api, admin: Api, namespace: str
    ):
        """Fact: the server respells the entries of whoever holds a part of an atomic field."""
        group = "respelt.hedgerow.example"
        admin.apply(noted(group, NOTES), "test").must()
        try:
            admin.served(f"{group}/v1")
            made = manifest("Thing", namespace, f"{group}/v1", spec={"notes": {"a": "1"}})
            eventually(lambda: admin.apply(made, "other").ok)
            before = admin.get(made).must()
            atomic = {**NOTES, "x-kubernetes-map-type": "atomic"}
            admin.apply(noted(group, atomic), "test").must()
            status = manifest("Thing", namespace, f"{group}/v1", status={"notes": {"b": "1"}})

            def respelt() -> bool:
                after = us.apply(status, MANAGER, subresource="status").must()
                status["status"]["notes"]["b"] += "1"
                return entries(before)[0] not in entries(after)

            eventually(respelt)
        finally:
            forget(admin, noted(group, NOTES))


NOTES = {"type": "object", "additionalProperties": {"type": "string"}}


def large_definition(words: str) -> Object:
    fields = {f"p{number}": {"type": "string", "description": words} for number in range(1300)}
    return noted("large.hedgerow.example", {"type": "object", "properties": fields})


def forget(admin: Api, defined: Object) -> None:
    """Delete a definition, and wait until other tests no longer find its group."""
    admin.delete(defined)
    group = defined["spec"]["group"]

    def groups() -> list[str]:
        return [one["name"] for one in admin.raw("GET", "/apis").must()["groups"]]

    eventually(lambda: group not in groups(), what=f"{group} is gone")


def noted(group: str, notes: Object) -> Object:
    part = of(notes=notes)
    return definition(group, "Thing", of(spec=part, status=part))
