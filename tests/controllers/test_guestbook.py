"""Guestbook: what is declared for a size and a ConfigMap, and which pod the status calls active."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controllers.told import applied, observed
from hedgerow.contract import KEEP_ALL, Desired, Keep, Observed
from hedgerow.controllers import guestbook
from hedgerow.controllers.guestbook import CONTROLLER, LISTED, NAMED_BY, compose
from hedgerow.deploy import confinement
from hedgerow.deploy.names import Names
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import ConfigMap, Deployment, Pod
from hedgerow_schemas.guestbook import Guestbook

Object = dict[str, Any]

OWN = {"app": "guestbook", NAMED_BY: "book"}
HASH = "5f"


def bare() -> Guestbook:
    return Guestbook.model_validate({"metadata": {"name": "demo", "namespace": "default"}})


def book(size: int = 2, active: str = "", **spec: Any) -> Guestbook:
    given = {"size": size, "configMapName": "pages", **spec}
    meta = {"name": "book", "namespace": "ns", "uid": "u"}
    return Guestbook.model_validate({"metadata": meta, "spec": given, "status": {"active": active}})


def config(name: str = "pages") -> ConfigMap:
    return ConfigMap({"metadata": {"name": name, "namespace": "ns"}})


def deployment(size: int = 2, up: int | None = None, mounts: str = "pages") -> Deployment:
    ready = size if up is None else up
    counts = ("replicas", "updatedReplicas", "readyReplicas")
    volumes = ["odd", {"name": "other"}, {"name": "pages", "configMap": {"name": mounts}}]
    return Deployment(
        {
            "metadata": {"name": "book", "namespace": "ns", "generation": 1},
            "spec": {"replicas": size, "template": {"spec": {"volumes": volumes}}},
            "status": {
                "observedGeneration": 1,
                **dict.fromkeys(counts, size),
                "availableReplicas": ready,
                "conditions": [{"type": "Available", "status": "True"}],
            },
        }
    )


def pod(name: str, *, ready: bool = True, labels: Object | None = None) -> Pod:
    meta = {
        "name": name,
        "namespace": "ns",
        "labels": {**(labels or OWN), "pod-template-hash": HASH},
        "ownerReferences": [{"kind": "ReplicaSet", "name": f"book-{HASH}", "controller": True}],
    }
    told = {"type": "Ready", "status": str(ready)}
    return Pod({"metadata": meta, "status": {"phase": "Running", "conditions": [told]}})


def settled(*more: View) -> Observed:
    return observed(config(), deployment(), *more)


def kept(desired: Desired) -> set[tuple[str, str]]:
    return {(c.kind.api.kind, c.name) for c in desired.children if isinstance(c, Keep)}


def readiness(desired: Desired) -> tuple[str, str, str]:
    (ready,) = desired.status.conditions
    return ready.status, ready.reason, ready.message


class TestConfigMap:
    def test_it_is_named_as_the_spec_says(self):
        (first, *_) = compose(book(), observed()).children

        assert (first.kind, first.name) == (ConfigMap, "pages")

    @pytest.mark.parametrize(
        ("spec", "word"),
        [({}, "name"), ({"alias": "Address"}, "address"), ({"alias": "Phone"}, "phone")],
    )
    def test_its_page_asks_for_the_alias(self, spec, word):
        page = applied(compose(book(**spec), observed()))["ConfigMap", "pages"]["data"][
            "index.html"
        ]

        assert page == f"<h1>book</h1>\n<p>Please sign with your {word}.</p>\n"


class TestDeployment:
    def test_it_has_as_many_replicas_as_the_size_says_and_mounts_the_configmap(self):
        spec = applied(compose(book(7), observed(config())))["Deployment", "book"]["spec"]

        assert spec["replicas"] == 7
        assert spec["selector"] == {"matchLabels": OWN}
        assert spec["template"]["metadata"]["labels"] == OWN
        (volume,) = spec["template"]["spec"]["volumes"]
        (only,) = spec["template"]["spec"]["containers"]
        assert volume["configMap"] == {"name": "pages"}
        assert [mount["name"] for mount in only["volumeMounts"]] == [volume["name"]]

    def test_nothing_that_the_restricted_standard_forbids_is_left_open(self):
        spec = applied(compose(book(), observed(config())))["Deployment", "book"]["spec"]
        pods = spec["template"]["spec"]

        assert pods["securityContext"]["runAsNonRoot"] is True
        assert pods["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False

    def test_it_mounts_no_configmap_that_is_not_its_own(self):
        desired = compose(book(), observed())

        assert set(applied(desired)) == {("ConfigMap", "pages")}
        assert kept(desired) == {("Deployment", "book")}


class TestAnotherConfigMap:
    def test_until_it_is_there_everything_stays(self):
        desired = compose(book(configMapName="new"), settled())

        assert kept(desired) == {("Deployment", "book"), ("ConfigMap", "pages")}
        assert (
            readiness(desired)[2]
            == "the ConfigMap new does not exist, or is not controlled by this Guestbook"
        )

    @pytest.mark.parametrize(
        ("live", "why"),
        [
            (deployment(), "the Deployment does not mount the ConfigMap new yet"),
            (deployment(up=1, mounts="new"), "1 of 2 replicas are available"),
        ],
        ids=["before the Deployment is written", "while pods are replaced"],
    )
    def test_the_former_one_stays_for_the_pods_that_still_mount_it(self, live, why):
        desired = compose(book(configMapName="new"), observed(config(), config("new"), live))

        assert kept(desired) == {("ConfigMap", "pages")}
        assert readiness(desired) == ("False", "Unavailable", why)

    def test_it_goes_once_all_mount_the_new_one(self):
        live = deployment(mounts="new")
        desired = compose(book(configMapName="new"), observed(config(), config("new"), live))

        assert kept(desired) == set()
        assert readiness(desired)[0] == "True"


class TestStatus:
    def test_it_is_ready_once_all_are_available(self):
        assert readiness(compose(book(), settled())) == ("True", "Serving", "all are available")
        assert readiness(compose(book(), observed(config())))[0] == "False"

    def test_one_ready_pod_is_active_and_the_others_stand_by(self):
        pods = (pod("book-c"), pod("book-a", ready=False), pod("book-b"), pod("book-d"))
        status = compose(book(), settled(*pods)).status

        assert (status.active, status.standby) == ("book-b", ("book-c", "book-d"))

    def test_it_stays_active_while_it_is_ready(self):
        pods = (pod("book-a"), pod("book-b"))

        status = compose(book(active="book-b"), settled(*pods)).status
        assert (status.active, status.standby) == ("book-b", ("book-a",))
        status = compose(book(active="book-z"), settled(*pods)).status
        assert (status.active, status.standby) == ("book-a", ("book-b",))

    def test_without_a_ready_pod_none_is_active(self):
        foreign = pod("book-x", labels={NAMED_BY: "book"})
        status = compose(book(active="book-a"), settled(pod("book-a", ready=False), foreign)).status

        assert (status.active, status.standby) == ("", ())
        assert status.wire()["standby"] == []

    def test_the_list_is_bounded_whatever_somebody_scales_to(self):
        pods = [pod(f"book-{n:03}") for n in range(LISTED * 2)]

        assert len(compose(book(), settled(*pods)).status.standby) == LISTED


class TestController:
    def test_it_runs_only_where_it_is_chosen(self):
        assert CONTROLLER.opt_in

    def test_the_policy_goes_by_the_name_of_the_deployment_and_not_of_the_configmap(self):
        (policy, _) = confinement.policy(Names(), [CONTROLLER])
        (child,) = (v for v in policy["spec"]["variables"] if v["name"] == "child")
        configmaps, deployments = child["expression"].split(") || (request")

        assert '"configmaps"' in configmaps
        assert "variables.name ==" not in configmaps
        assert "variables.name == r.name" in deployments

    def test_it_imports_the_public_library_alone(self):
        lines = Path(guestbook.__file__).read_text("utf-8").splitlines()
        imported = {line.split()[1] for line in lines if line.startswith("from hedgerow")}

        assert imported == {"hedgerow", "hedgerow_schemas.guestbook"}


class TestWithoutASpec:
    def test_it_says_what_is_missing(self):
        desired = compose(bare(), observed())

        assert desired.children == KEEP_ALL
        assert desired.status is not None
        told = {one.type: f"{one.status}/{one.reason}" for one in desired.status.conditions}
        assert told == {"Stalled": "True/SpecMissing", "Ready": "False/SpecMissing"}
        assert "spec.configMapName" in desired.status.conditions[0].message
