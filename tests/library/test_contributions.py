"""What a controller with a built-in resource and contributions gets: rights, policy, commands."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

import hedgerow
from hedgerow.cli.targets import is_meant
from hedgerow.controllers.scaler.controller import DEPLOYMENTS, STATEFUL_SETS
from hedgerow.deploy import authors, confinement
from hedgerow.deploy.admission_policies import unchanged_but
from hedgerow.deploy.names import Names
from hedgerow.deploy.overlays import OVERLAYS, parts
from hedgerow.deploy.rights import Right, of_controllers
from hedgerow.deploy.webhooks import configuration
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.registry import Registry
from hedgerow.serving.admission.configuration import webhook_names
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_tools.objects.managing import is_applied_by
from hedgerow_tools.tree.members.resources import ObjectIndex, RootKind, reduced, resource_tree
from library import scaler
from library.scaler import SCALER, Autoscaler
from support.operator.registered import ALL

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class StatefulWorkload(hedgerow.Resource):
    """A StatefulSet; nothing is installed for it."""

    api: ClassVar[hedgerow.ApiResource] = hedgerow.StatefulSet.api


def controller(**more: Any) -> hedgerow.Controller[Any]:
    given: dict[str, Any] = {"owns": (), **more}
    return hedgerow.Controller("other", BlueGreen, SCALER.compose, **given)  # type: ignore[arg-type]


def contributing(*fields: tuple[str, ...]) -> hedgerow.Controller[Any]:
    return replace(SCALER, built_in=hedgerow.BuiltIn(contributes=fields))


def workload(wanted: str) -> scaler.Workload:
    meta = hedgerow.ObjectMeta(
        name="web",
        namespace="shop",
        annotations={scaler.WANTED: wanted},
    )
    return scaler.Workload(metadata=meta)


class TestScaler:
    def test_it_contributes_the_replicas_to_the_resource_itself(self):
        desired = scaler.compose(workload(wanted="3"), hedgerow.Observed(NOW))

        assert desired.contributions == (
            hedgerow.Contribution(hedgerow.Deployment, "web", {"spec": {"replicas": 3}}),
        )

    def test_it_contributes_to_the_autoscaler_that_targets_it(self):
        found = Autoscaler({"metadata": {"name": "web-hpa", "namespace": "shop"}})
        desired = scaler.compose(
            workload(wanted="3"), hedgerow.Observed(NOW, contributable=(found,))
        )

        assert desired.contributions == (
            hedgerow.Contribution(Autoscaler, "web-hpa", {"spec": {"minReplicas": 3}}),
        )

    def test_it_is_the_guides(self):
        guide = (Path(__file__).parents[2] / "docs/guides/library.md").read_text("utf-8")
        program = guide.partition("<!-- scaler -->")[2].partition("```python\n")[2]

        assert program.partition("```\n")[0] == Path(scaler.__file__).read_text("utf-8")


class TestRegistry:
    def test_nothing_is_installed_for_a_built_in_resource(self):
        registry = Registry((SCALER,))

        assert registry.resources == ()
        assert registry.names == ("scaler",)

    @pytest.mark.parametrize(
        ("how", "why"),
        [
            (
                {"owns": (Autoscaler,), "contributes": (hedgerow.ContributesTo(Autoscaler, ()),)},
                "two kinds",
            ),
            (
                {
                    "contributes": (
                        hedgerow.ContributesTo(Autoscaler, ()),
                        hedgerow.ContributesTo(Autoscaler, ()),
                    )
                },
                "two kinds",
            ),
        ],
        ids=["owned and contributed to", "contributed to twice"],
    )
    def test_a_kind_is_owned_or_contributed_to_once(self, how, why):
        with pytest.raises(ValueError, match=why):
            Registry((controller(**how),))

    def test_a_cluster_scoped_kind_is_not_written_for_a_namespaced_resource(self):
        class Node(hedgerow.View):
            api: ClassVar[hedgerow.ApiResource] = hedgerow.ApiResource(
                "v1", "Node", "nodes", namespaced=False
            )

        with pytest.raises(ValueError, match="both are in a namespace"):
            Registry((controller(contributes=(hedgerow.ContributesTo(Node, ()),)),))

    @pytest.mark.parametrize(
        "path",
        [
            (),
            ("status", "replicas"),
            ("metadata", "finalizers"),
            ("metadata", "labels"),
            ("metadata", "annotations", "hedgerow.dev/status"),
        ],
        ids=["nothing", "the status", "finalizers", "all labels", "our own annotation"],
    )
    def test_what_nobody_may_contribute_is_not_declared(self, path):
        with pytest.raises(ValueError, match=r"scaler may not contribute .* to Deployment"):
            Registry((contributing(*SCALER.built_in.contributes, path),))

    def test_a_label_and_an_annotation_may_be_declared(self):
        fields = (("metadata", "labels", "a"), ("metadata", "annotations", "example.com/a"))

        assert Registry((contributing(*fields),)).names == ("scaler",)

    @pytest.mark.parametrize(
        "given",
        [
            {"select": hedgerow.Select(namespace="shop")},
            {"annotation_prefix": "example.com/"},
            {"contributes": (("spec", "replicas"),)},
        ],
        ids=lambda given: next(iter(given)),
    )
    def test_what_is_for_built_in_resources_is_not_said_of_a_custom_one(self, given):
        with pytest.raises(ValueError, match="is for BlueGreen, which is custom: leave `built_in`"):
            Registry((controller(built_in=hedgerow.BuiltIn(**given)),))

    def test_a_built_in_resource_has_no_webhooks(self):
        odd = hedgerow.Controller(
            "odd", scaler.Workload, scaler.compose, owns=(), validate=lambda obj: ()
        )

        with pytest.raises(ValueError, match="it has no webhooks"):
            Registry((odd,))
        assert webhook_names([SCALER]) == frozenset()
        assert configuration([SCALER], name="hedgerow", namespace="hedgerow-system") is None


class TestOneName:
    """Controllers for several built-in kinds may have one name, and so one field manager."""

    OTHER = replace(SCALER, resource=StatefulWorkload, contributes=())

    def test_they_are_chosen_together(self):
        registry = Registry((SCALER, self.OTHER))

        assert registry.names == ("scaler",)
        assert registry["scaler"] == registry.chosen(("scaler",)) == (SCALER, self.OTHER)
        assert [one.title for one in registry.controllers] == [
            "scaler/Deployment",
            "scaler/StatefulSet",
        ]

    @pytest.mark.parametrize(
        "other",
        [
            controller(),
            replace(OTHER, owns=(hedgerow.Service,)),
            replace(OTHER, opt_in=True),
        ],
        ids=["a custom resource", "children", "chosen otherwise"],
    )
    def test_no_others_may(self, other):
        with pytest.raises(ValueError, match="two controllers are named scaler"):
            Registry((SCALER, replace(other, name="scaler")))

    def test_a_module_may_name_them_together(self):
        assert ALL["scaler"] == (DEPLOYMENTS, STATEFUL_SETS)


class TestRights:
    def test_what_is_contributed_to_is_never_created_nor_deleted(self):
        found = of_controllers([SCALER])
        kinds = {("apps", "deployments"), ("autoscaling", "horizontalpodautoscalers")}

        assert {right for right in found if right.resource != "events"} == {
            Right(group, resource, verb)
            for group, resource in kinds
            for verb in ("get", "list", "watch", "patch")
        }


class TestConfinement:
    @pytest.mark.parametrize(
        ("names", "manager"),
        [
            (Names(), "hedgerow-scaler"),
            (Names("two"), "hedgerow-two-scaler"),
            (Names(program="clock"), "clock-scaler"),
        ],
        ids=["hedgerow", "an instance", "a program"],
    )
    def test_a_contribution_changes_what_is_declared_as_its_manager(self, names, manager):
        policy, _ = confinement.policy(names, [SCALER])
        variables = {one["name"]: one["expression"] for one in policy["spec"]["variables"]}
        (child, *_) = [v for v in policy["spec"]["validations"] if "children" in v["message"]]

        assert child["expression"].endswith(" || variables.contributed")
        assert f'"{manager}"' in variables["contributed"]
        assert unchanged_but((("spec", "minReplicas"),)) in variables["contributed"]
        own = (("spec", "replicas"), ("metadata", "annotations", STATUS_ANNOTATION))
        assert unchanged_but(own) in variables["contributed"]
        assert variables["child"] == "variables.named.exists(r, false)"

    def test_every_kind_that_is_written_is_judged(self):
        policy, _ = confinement.policy(Names(), [SCALER])
        rules = policy["spec"]["matchConstraints"]["resourceRules"]

        assert {(rule["apiGroups"][0], *rule["resources"]) for rule in rules} == {
            ("", "secrets"),
            ("apps", "deployments"),
            ("autoscaling", "horizontalpodautoscalers"),
            ("events.k8s.io", "events"),
        }

    def test_no_secret_may_give_somebodys_rights(self):
        policy, _ = confinement.policy(Names(), ALL.limited(["secretsync"]).controllers)
        expressions = [one["expression"] for one in policy["spec"]["validations"]]

        assert any("kubernetes.io/service-account-token" in one for one in expressions)

    def test_without_contributions_nothing_is_said_of_them(self):
        policy, _ = confinement.policy(Names(), [controller(owns=(hedgerow.Service,))])

        assert "contributed" not in json.dumps(policy)


class TestAuthors:
    @staticmethod
    def judged(*controllers: hedgerow.Controller[Any]) -> tuple[Any, list[str]]:
        policy, _ = authors.policy(Names(), controllers)
        validations = [one["expression"] for one in policy["spec"]["validations"]]
        return policy["spec"]["matchConstraints"]["resourceRules"], validations

    def test_who_asks_by_an_annotation_must_be_able_to_patch_what_is_contributed_to(self):
        (rule,), (deployments, autoscalers) = self.judged(SCALER)

        assert rule["resources"] == ["deployments", "deployments/*"]
        assert 'authorizer.group("apps").resource("deployments")' in deployments
        assert '.resource("horizontalpodautoscalers").namespace(request.namespace)' in autoscalers
        for one in (deployments, autoscalers):
            assert "variables.claimChanged" in one
            assert f'k.startsWith("{scaler.WANTED}")' in one

    def test_who_changes_the_spec_under_a_claim_is_asked_for_custom_resources_alone(self):
        (rule,), validations = self.judged(*ALL.chosen(["bluegreen"]))
        _, built_in = self.judged(SCALER)

        assert rule["resources"] == ["bluegreens"]
        assert all("object.?spec != oldObject.?spec" in one for one in validations)
        assert not any(".?spec" in one for one in built_in)

    def test_each_kind_that_is_written_is_asked_about_once(self):
        _, validations = self.judged(*ALL.chosen(["bluegreen"]))
        asked = [one.partition(" || authorizer")[2] for one in validations]

        assert [one.split('"')[3] for one in asked] == ["deployments", "services", "jobs"]

    def test_of_a_namespace_it_is_the_right_in_that_namespace(self):
        _, validations = self.judged(*ALL.chosen(["secretsync"]))

        (copies,) = validations
        assert '"namespaces"' in copies
        assert '.resource("secrets").namespace(object.metadata.name)' in copies

    def test_of_a_cluster_scoped_kind_it_is_the_right_everywhere(self):
        class Node(hedgerow.Resource):
            api: ClassVar[hedgerow.ApiResource] = hedgerow.ApiResource(
                "v1", "Node", "nodes", namespaced=False
            )

        (_, (nodes,)) = self.judged(replace(SCALER, resource=Node, contributes=()))
        assert '.resource("nodes").check(' in nodes

    @pytest.mark.parametrize("overlay", OVERLAYS)
    def test_it_is_installed_with_each_controller_with_webhooks_or_without(self, overlay):
        for name in ALL.names:
            files = {part.path for part in parts(overlay, "x", ALL.limited((name,)))}
            assert "authors/policy.yaml" in files

    def test_a_controller_that_writes_nothing_has_none(self):
        assert authors.policy(Names(), [controller(owns=())]) == []


class TestTree:
    LIVE: ClassVar[dict[str, Any]] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u",
            "annotations": {
                STATUS_ANNOTATION: json.dumps({
                    "conditions": [{"type": "Contested", "status": "True", "reason": "Why"}],
                    "contested": [
                        {"object": "Deployment/web", "path": ".spec.replicas", "manager": "k"}
                    ],
                })
            },
            "managedFields": [{"manager": "hedgerow-scaler", "operation": "Apply"}],
        },
        "status": {"conditions": [{"type": "Available", "status": "True"}]},
    }  # fmt: skip

    def test_it_shows_what_the_annotation_says(self):
        live = reduced(self.LIVE)
        tree = resource_tree(RootKind.of(SCALER), live, ObjectIndex([live]))

        assert [one.type for one in tree.conditions] == ["Contested"]
        assert [one.path for one in tree.contested] == [".spec.replicas"]
        assert all(is_meant(SCALER, word) for word in ("deployments", "deployment"))

    def test_of_a_built_in_kind_it_shows_what_the_controller_writes_to(self):
        assert is_applied_by(self.LIVE, "scaler")
        assert not is_applied_by(self.LIVE, "other")
        assert not is_applied_by({"metadata": {"name": "web"}}, "scaler")
