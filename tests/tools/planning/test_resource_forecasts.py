"""Resource forecasts, over the cluster in memory: what is foretold, and what is sent."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, cast

import pytest

from hedgerow.kube.errors import Missing, Unavailable
from hedgerow.objects import CONTROLLER_LABEL, Installation, ObjectRef
from hedgerow.plan.conflict_messages import OTHER_VALUE
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow_testing.memory.answers import missing
from hedgerow_tools.fields.forecast import Forecast, ObjectForecast
from hedgerow_tools.fields.relabelling import CLIENT_SIDE, LAST_APPLIED
from hedgerow_tools.planning.dry_run import STORED_LIMIT, UserApply
from hedgerow_tools.planning.resource_forecasts import ResourceForecaster
from runtime.clockwork import POD, Clockwork
from runtime.scenes import IMAGE, settled, take_image, take_service_name
from runtime.world import BLUEGREEN, CONTROLLER, NS, World, pods
from support.server.apiserver import Reply, refusal, unserved
from support.server.connected import connected
from tools.planning.asked import asked, conflict, contested, invalid, namespace

pytestmark = pytest.mark.anyio

Object = dict[str, Any]
USER = UserApply("user")
BLUE = "Deployment/demoblue-deployment"
NOT_SERVED = "the server could not find the requested resource"


def manifest(name: str = "demo", namespace: str = NS, **spec: Any) -> Object:
    usual = {"routeTo": "Blue", "blueSpec": pods("blue"), "greenSpec": pods("green")}
    return {
        "apiVersion": BLUEGREEN,
        "kind": "BlueGreen",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {k: v for k, v in (usual | spec).items() if v is not None},
    }


def ref() -> ObjectRef:
    return ObjectRef(CONTROLLER.resource.api, NS, "demo")


class Plan:
    """One plan, and the requests that it took."""

    def __init__(self, world: World, *lacks: str, applier: UserApply = USER) -> None:
        self.world = world
        self.api = asked(world.server, *lacks)
        self.cluster = connected(self.api)
        self.forecaster = ResourceForecaster(self.cluster, world.clock, applier=applier)

    async def of(self, body: Object, *, coming: bool = False) -> Forecast:
        version = self.world.server.version
        controller = cast("Any", self.world.controller)
        made = {("", "namespaces", body["metadata"]["namespace"])} if coming else ()
        found = await self.forecaster.of_manifest(controller, body, made=made)
        assert self.world.server.version == version
        assert self.writes() == []
        return found

    def writes(self) -> list[str]:
        return [str(one) for one in self.api.exchanges if one.writes]

    async def of_name(self, name: str = "demo") -> Forecast | None:
        return await self.forecaster.of_name(cast("Any", self.world.controller), name, NS)


def actions(forecast: Forecast) -> dict[str, str]:
    return {str(found): found.action for found in forecast.objects}


def the(forecast: Forecast, name: str) -> ObjectForecast:
    [found] = [found for found in forecast.objects if str(found) == name]
    return found


def annotated(body: Object, **annotations: str) -> Object:
    names = {"claim": CLAIM, "leave": YIELD}
    given = {names[name]: value for name, value in annotations.items()}
    return {**body, "metadata": {**body["metadata"], "annotations": given}}


class TestSituations:
    async def test_a_new_resource(self):
        found = await Plan(World()).of(manifest())

        assert set(actions(found).values()) == {"created"}
        assert len(found.objects) == 4
        assert found.verdict == "changes"
        assert found.conditions.before == ()
        assert {c.type for c in found.conditions.after} == {"Ready", "Available", "Reconciling"}

    async def test_a_resource_as_it_is(self):
        plan = Plan(await settled())
        found = await plan.of_name()

        assert found is not None
        assert found.verdict == "nothing"
        assert plan.writes() == []

    async def test_a_resource_that_is_not_there_has_no_forecast(self):
        assert await Plan(World()).of_name() is None

    async def test_a_change(self):
        found = await Plan(await settled()).of(manifest(blueSpec=pods("blue", "example/echo:2")))

        assert actions(found) == {"BlueGreen/demo": "configured", BLUE: "configured"}
        [line] = the(found, BLUE).lines
        assert (line.path, line.old, line.new) == (IMAGE, "example/echo:1", "example/echo:2")
        assert [holder.manager for holder in line.holders] == ["hedgerow-bluegreen"]

    async def test_a_contested_field(self):
        world = await settled()
        take_image(world)
        found = await Plan(world).of(manifest())

        assert found.verdict == "conflicts"
        assert [(f.object, f.path, f.manager) for f in contested(found)] == [(BLUE, IMAGE, "helm")]
        assert [(event.regarding, event.reason) for event in found.events] == [
            ("BlueGreen/demo", "FieldConflict")
        ]

    async def test_a_claim_is_taken_in_a_forced_dry_run(self):
        world = await settled()
        take_image(world)
        plan = Plan(world)
        found = await plan.of(annotated(manifest(), claim="*/*: **"))

        assert found.verdict == "changes"
        assert {one.name for one in plan.api.exchanges if one.force} == {BLUE.partition("/")[2]}
        assert the(found, BLUE).forced == (IMAGE,)
        [line] = the(found, BLUE).lines
        assert (line.kind, line.old, line.new) == ("changed", "theirs:9", "example/echo:1")
        assert [h.manager for h in found.claims] == ["helm"]
        assert {event.reason for event in found.events} == {"FieldClaimed"}

    async def test_what_nobody_holds_and_is_in_the_way_would_go(self):
        world = await settled(blueSpec=pods("blue", volumes=[{"name": "files"}]))
        files = [{"name": "files", "configMap": {"name": "files"}}]
        found = await Plan(world).of(manifest(blueSpec=pods("blue", volumes=files)))

        assert (found.verdict, found.refusals) == ("changes", ())
        assert the(found, BLUE).merged == "a field that nobody holds would be removed first"
        volume = '.spec.template.spec.volumes[name="files"]'
        lines = {line.path: (line.kind, line.old, line.new) for line in the(found, BLUE).lines}
        assert lines[f"{volume}.emptyDir"][0] == "removed"
        assert lines[f"{volume}.configMap.name"][::2] == ("added", "files")
        assert "Stalled" not in {condition.type for condition in found.conditions.after}

    async def test_a_claim_that_the_namespace_does_not_allow_is_told_as_refused(self):
        world = await settled()
        take_image(world)
        plan = Plan(world)
        namespace(world.server)
        found = await plan.of(annotated(manifest(), claim="*/*: **"))

        assert found.verdict == "failed"
        assert (found.claims, [held.path for held in contested(found)]) == ((), [IMAGE])
        assert [c.reason for c in found.problems] == ["ClaimRefused"]

    async def test_where_the_namespace_may_not_be_read_that_is_told(self):
        world = await settled()
        take_image(world)
        found = await Plan(world, "get namespaces").of(annotated(manifest(), claim="*/*: **"))

        [said] = found.unchecked
        assert said.startswith("whether namespace default allows hedgerow.dev/claim (label ")

    async def test_what_is_yielded(self):
        world = await settled()
        take_image(world)
        found = await Plan(world).of(annotated(manifest(), leave=f"Deployment/*: {IMAGE}"))

        (held,) = found.yields
        assert (held.object, held.path, held.manager) == (BLUE, IMAGE, "helm")
        assert (held.declared, held.live) == ("example/echo:1", "theirs:9")
        assert found.contested == ()

    async def test_what_a_switch_waits_for(self):
        checks = [{"name": "front", "job": {"spec": {"template": {}}}}]
        found = await Plan(World()).of(manifest(promotion="WhenChecked", checks=checks))

        ready = next(one for one in found.conditions.after if one.type == "Ready")
        assert (ready.status, ready.reason) == ("False", "WaitingForAvailability")
        assert found.status.after["phase"] == "WaitingForAvailability"
        steps = ["wait until Blue is available", "check front", "select Blue"]
        assert found.status.after["switch"]["steps"] == steps

    async def test_a_prune(self):
        found = await Plan(await settled()).of(manifest(greenSpec=None))

        assert actions(found)["Deployment/demogreen-deployment"] == "deleted"

    async def test_a_prune_that_waits_for_a_finalizer(self):
        world = await settled()
        name = "demogreen-deployment"
        world.edit("Deployment", name, {"metadata": {"finalizers": ["example.com/wait"]}})
        found = await Plan(world).of(manifest(greenSpec=None))

        assert actions(found)[f"Deployment/{name}"] == "deleted"

    async def test_what_follows_a_rollout(self):
        found = await Plan(await settled()).of(manifest(routeTo="Green", promotion="WhenAvailable"))

        assert actions(found) == {"BlueGreen/demo": "configured"}
        [later] = found.later
        assert (str(later), later.action) == ("Service/demo", "configured")
        assert [line.path for line in later.lines] == [".spec.selector"]

    async def test_a_prune_that_follows_a_rollout(self):
        found = await Plan(await settled(promotion="WhenAvailable")).of(
            manifest(routeTo="Green", promotion="WhenAvailable", blueSpec=None)
        )

        assert {str(o): o.action for o in found.later} == {
            "Service/demo": "configured", BLUE: "deleted",
        }  # fmt: skip

    async def test_a_name_that_somebody_else_has(self):
        world = await settled()
        take_service_name(world)
        found = await Plan(world).of(manifest())

        assert found.verdict == "conflicts"
        assert [c.reason for c in found.problems] == ["NameTaken"]

    async def test_of_what_was_left_without_owner_a_command_with_the_uid_is_told(self):
        world = await settled()
        world.edit("Service", "demo", {"metadata": {"ownerReferences": None}})
        uid = world.the("BlueGreen")["metadata"]["uid"]
        [stored] = (await Plan(world).of(manifest())).problems

        assert "`kubectl patch Service/demo --type=merge -p " in stored.message
        assert f'"uid":"{uid}"' in stored.message

        # Before the resource exists, nobody knows its uid.
        world.delete("BlueGreen")
        for colour in ("blue", "green"):
            world.delete("Deployment", f"demo{colour}-deployment")
        [coming] = (await Plan(world).of(manifest())).problems

        assert "kubectl" not in coming.message
        assert "Once BlueGreen/demo is stored, its status has the command" in coming.message

    async def test_as_another_installation_the_labels_of_its_children_are_contested(self):
        plan = Plan(await settled())
        plan.forecaster = replace(plan.forecaster, installation=Installation("two"))

        forecast = await plan.of(manifest())

        held = {(field.path, field.manager) for field in contested(forecast)}
        assert (f".metadata.labels.{CONTROLLER_LABEL}", "hedgerow-bluegreen") in held

    async def test_warnings_of_the_server(self):
        plan = Plan(World())
        plan.api.warnings = ("spec.x is deprecated",)
        found = await plan.of(manifest())

        assert {o.warnings for o in found.objects} == {("spec.x is deprecated",)}


class TestNotAsked:
    async def test_without_a_namespace_all_is_merged(self):
        plan = Plan(World())
        found = await plan.of(manifest(namespace="nowhere"), coming=True)

        assert {o.merged for o in found.objects} == {"its namespace does not exist yet"}
        assert plan.writes() == []

    async def test_a_namespace_that_may_not_be_read_is_found_out(self):
        found = await Plan(World(), "get namespaces").of(manifest(namespace="nowhere"), coming=True)

        assert {o.merged for o in found.objects} == {"its namespace does not exist yet"}

    async def test_without_rights_a_change_is_merged(self):
        rights = ("patch deployments", "patch services", "patch bluegreens")
        world = await settled()
        plan = Plan(world, *rights)
        found = await plan.of(manifest(blueSpec=pods("blue", "example/echo:2"), greenSpec=None))

        assert actions(found) == {
            "BlueGreen/demo": "configured", BLUE: "configured",
            "Deployment/demogreen-deployment": "deleted",
        }  # fmt: skip
        assert the(found, BLUE).merged == the(found, "BlueGreen/demo").merged
        assert the(found, BLUE).merged == "you may not patch it"
        assert [line.path for line in the(found, BLUE).lines] == [IMAGE]

    async def test_without_rights_an_unchanged_resource_stays_unchanged(self):
        found = await Plan(await settled(), "patch bluegreens").of(manifest())

        assert found.verdict == "nothing"

    async def test_the_right_to_create_is_another_one(self):
        plan = Plan(World(), "create services", "create bluegreens")
        for kind in ("Service", "BlueGreen"):
            plan.api.refuse(kind, refusal(403, "Forbidden", "no"))
        found = await plan.of(manifest())

        assert the(found, "Service/demo").merged == "you may not patch it"
        assert the(found, "BlueGreen/demo").merged == "you may not patch it"
        assert the(found, BLUE).merged is None

    async def test_a_kind_that_may_not_be_listed_is_told(self):
        found = await Plan(await settled(), "list deployments", "list pods").of_name()

        assert found is not None
        assert found.unchecked == (
            "deployments may not be listed: what would be pruned is not known",
            "pods may not be listed: assumed none",
        )

    async def test_of_a_kind_that_is_not_served_is_planned_what_the_operator_would_do(self):
        plan = Plan(World())
        plan.api.answers["list Service"] = refusal(404, "NotFound", NOT_SERVED)
        found = await plan.of(manifest())

        assert {action for name, action in actions(found).items() if "Deployment" in name} == {
            "created"
        }
        assert "Service/demo" not in actions(found)
        assert "NotServed" in {condition.reason for condition in found.conditions.after}

    async def test_a_resource_that_is_going_is_told(self):
        world = await settled()
        world.edit("BlueGreen", "demo", {"metadata": {"finalizers": ["example.com/hold"]}})
        world.delete("BlueGreen")
        found = await Plan(world).of(manifest(routeTo="Green"))

        assert actions(found) == {"BlueGreen/demo": "configured"}
        assert found.unchecked == ("the resource is being deleted, so hedgerow writes nothing",)

    async def test_a_namespace_that_is_going_is_told(self):
        plan = Plan(await settled())
        namespace(plan.world.server, deletionTimestamp="2026-01-01T00:00:00Z")
        found = await plan.of(manifest(routeTo="Green"))

        assert found.unchecked == ("the namespace is being deleted: nothing is created in it",)


REFUSED = [invalid("not so"), refusal(403, "Forbidden", "not so")]
UNSERVED, DOWN = Reply(404, unserved().status), refusal(503, "ServiceUnavailable", "down")


class TestRefused:
    @pytest.mark.parametrize("answer", REFUSED)
    async def test_the_resource_itself(self, answer):
        plan = Plan(await settled())
        plan.api.refuse("BlueGreen", answer)
        found = await plan.of(manifest())

        assert actions(found) == {"BlueGreen/demo": "refused"}
        assert [cause for r in found.refusals for cause in r.causes] == ["not so"]
        assert found.verdict == "failed"
        assert found.conditions.before == found.conditions.after != ()

    @pytest.mark.parametrize("answer", REFUSED)
    async def test_one_of_its_children(self, answer):
        plan = Plan(World())
        plan.api.refuse("Deployment", answer)
        found = await plan.of(manifest())

        assert actions(found)[BLUE] == "refused"
        assert actions(found)["Service/demo"] == "created"
        assert found.verdict == "failed"
        assert found.later == ()

    async def test_by_who_holds_its_fields(self):
        world = await settled()
        world.edit("BlueGreen", "demo", {"spec": {"routeTo": "Green"}})
        found = await Plan(world).of(manifest())

        assert actions(found) == {"BlueGreen/demo": "refused"}
        [held] = contested(found)
        assert (held.path, held.manager, held.operation) == (
            ".spec.routeTo", "kubectl-edit", "Update",
        )  # fmt: skip

    async def test_by_a_holder_that_is_known_by_name_alone(self):
        plan = Plan(await settled())
        plan.api.refuse("BlueGreen", conflict(".spec.x", "someone"))
        found = await plan.of(manifest())

        [held] = contested(found)
        assert held.wire() == {
            "object": "BlueGreen/demo", "path": ".spec.x", "reason": OTHER_VALUE,
            "manager": "someone",
        }  # fmt: skip

    async def test_a_child_of_a_kind_that_is_not_served_is_an_error(self):
        plan = Plan(World())
        plan.api.refuse("Service", UNSERVED)
        with pytest.raises(Missing):
            await plan.of(manifest())

    async def test_a_namespace_that_is_found_missing_by_the_way(self):
        plan = Plan(World())
        for kind in ("BlueGreen", "Service"):
            plan.api.refuse(kind, Reply(404, missing(NS).status))
        found = await plan.of(manifest(), coming=True)

        assert the(found, "BlueGreen/demo").merged == "its namespace does not exist yet"
        assert the(found, "Service/demo").merged == "its namespace does not exist yet"

    async def test_a_server_that_fails_at_one_child_is_a_refusal(self):
        plan = Plan(World())
        plan.api.refuse("Service", refusal(500, "InternalError", "failed calling webhook"))
        found = await plan.of(manifest())

        assert [cause for r in found.refusals for cause in r.causes] == ["failed calling webhook"]
        assert found.verdict == "failed"
        assert the(found, "Deployment/demogreen-deployment").action == "created"

    async def test_a_server_that_is_down_is_an_error(self):
        plan = Plan(World())
        plan.api.refuse("Service", DOWN)
        with pytest.raises(Unavailable):
            await plan.of(manifest())


def by_client(stored: Any, copy: str = "") -> World:
    """Have a resource that client-side apply made, with the copy that it keeps of it."""
    world = World()
    stored["metadata"]["annotations"] = {LAST_APPLIED: copy or json.dumps(stored)}
    world.server.create(stored, CLIENT_SIDE)
    return world


class TestMigration:
    """`kubectl apply --server-side` of what client-side apply has: it takes the fields over."""

    APPLIER = UserApply()

    async def test_what_is_no_longer_declared_goes(self):
        world = by_client(manifest(promotion="WhenAvailable"))
        found = await Plan(world, applier=self.APPLIER).of(manifest(greenSpec=None))

        own = the(found, "BlueGreen/demo")
        removed = {line.path for line in own.lines if line.kind == "removed"}
        assert ".spec.promotion" not in removed  # the server puts the same value back: its default
        assert any(path.startswith(".spec.greenSpec") for path in removed)
        assert own.merged is None

    async def test_without_an_answer_to_that_it_is_worked_out_here(self):
        world = by_client(manifest(promotion="WhenAvailable"))
        plan = Plan(world, applier=self.APPLIER)
        plan.api.answers["patch BlueGreen"] = DOWN
        own = the(await plan.of(manifest(greenSpec=None)), "BlueGreen/demo")

        assert ".spec.promotion" in {line.path for line in own.lines if line.kind == "removed"}
        assert str(own.merged).startswith("kubectl takes over what client-side apply held")

    async def test_where_nothing_goes_the_servers_answer_stands(self):
        world = by_client(manifest())
        spec = pods("green", "example/echo:2")
        found = await Plan(world, applier=self.APPLIER).of(manifest(greenSpec=spec))

        own = the(found, "BlueGreen/demo")
        assert {line.path for line in own.lines if line.kind == "changed"} <= {
            '.spec.greenSpec.containers[name="green"].image'
        }

    async def test_a_second_one_has_nothing_to_take_over(self):
        world = World()
        world.server.apply(manifest(), "kubectl")
        found = await Plan(world, applier=self.APPLIER).of(manifest())

        assert actions(found)["BlueGreen/demo"] == "unchanged"


class TestSize:
    async def test_what_is_too_large_to_be_stored_is_refused(self):
        found = await Plan(World()).of(manifest(blueSpec=pods("blue", "x" * STORED_LIMIT)))

        assert actions(found) == {"BlueGreen/demo": "refused"}
        assert "request is too large" in found.refusals[0].causes[0]


class TestNowhereYet:
    async def test_a_namespace_that_nothing_makes_is_refused(self):
        found = await Plan(World()).of(manifest(namespace="nowhere"))

        assert actions(found) == {"BlueGreen/demo": "refused"}
        assert "make it first, or earlier in the files" in found.refusals[0].causes[0]

    async def test_what_no_server_is_asked_about_is_judged_by_the_webhooks_rules(self):
        body = annotated(manifest(namespace="nowhere"), claim="nonsense")
        found = await Plan(World()).of(body, coming=True)

        assert actions(found) == {"BlueGreen/demo": "refused"}
        assert "nonsense" in found.refusals[0].causes[0]

    async def test_what_it_has_to_say_of_it_is_a_warning(self):
        body = annotated(manifest(namespace="nowhere"), claim="Pod/*: spec.x")
        found = await Plan(World()).of(body, coming=True)

        assert "Pod is not written here" in the(found, "BlueGreen/demo").warnings[0]


BAD_POD: Object = {
    "restartPolicy": "Always",
    "containers": [
        {"name": "c", "image": "busybox", "volumeMounts": [{"name": "nope", "mountPath": "/x"}]}
    ],
}
WRONG = ("spec.template.spec.restartPolicy", "spec.template.spec.containers[0].volumeMounts[0]")


def yearly(pod: Object = BAD_POD, **spec: Any) -> Object:
    template = {"spec": {"template": {"spec": pod}}}
    return {
        "apiVersion": "batch.tutorial.kubebuilder.io/v1",
        "kind": "CronJob",
        "metadata": {"name": "yearly", "namespace": NS},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": template, **spec},
    }


def causes(forecast: Forecast) -> str:
    return "; ".join(cause for refusal in forecast.refusals for cause in refusal.causes)


class TestTemplates:
    """What is made of a template later is tried as well, whatever holds it back now."""

    @pytest.mark.parametrize(
        "spec",
        [
            {},
            {"suspend": True},
            {"schedule": "0 0 30 2 *"},
            {"schedule": "junk"},
            {"startingDeadlineSeconds": 0},
            {"concurrencyPolicy": "Forbid"},
        ],
        ids=str,
    )
    async def test_a_job_that_would_be_refused_is_told(self, spec: Object):
        found = await Plan(Clockwork()).of(yearly(**spec))

        assert found.verdict == "failed"
        assert actions(found)["CronJob/yearly"] == "created"
        assert all(field in causes(found) for field in WRONG)
        [refusal] = found.refusals
        assert re.fullmatch(r"Job/yearly-[0-9]{10}", refusal.object)

    async def test_of_a_resource_that_is_there_as_well(self):
        world = Clockwork()
        world.server.apply(yearly(), "user")
        found = await Plan(world).of_name("yearly")

        assert found is not None
        assert found.verdict == "failed"

    async def test_one_that_would_be_created_is_not_mentioned(self):
        found = await Plan(Clockwork()).of(yearly(POD))

        assert (found.verdict, found.refusals, found.unchecked) == ("changes", (), ())
        assert actions(found) == {"CronJob/yearly": "created"}

    @pytest.mark.parametrize(
        ("promotion", "is_told"), [("WhenChecked", True), ("Immediate", False)]
    )
    async def test_the_job_of_a_check_is_tried_if_it_is_run(self, promotion: str, is_told: bool):
        job = {"spec": {"template": {"spec": BAD_POD}}}
        checks = [{"name": "smoke", "job": job}]
        found = await Plan(World()).of(manifest(checks=checks, promotion=promotion))

        assert (found.verdict == "failed") is is_told
        assert all((field in causes(found)) is is_told for field in WRONG)

    async def test_a_check_that_would_be_created_is_not_mentioned(self):
        checks = [{"name": "smoke", "job": {"spec": {"template": {"spec": POD}}}}]
        found = await Plan(World()).of(manifest(checks=checks, promotion="WhenChecked"))

        assert (found.verdict, found.refusals) == ("changes", ())

    async def test_without_the_right_it_is_not_known(self):
        found = await Plan(Clockwork(), "patch jobs").of(yearly())

        assert (found.verdict, found.refusals) == ("changes", ())
        [told] = found.unchecked
        assert re.fullmatch(r"whether .* Job/yearly-\d+, of its template: you may not .*", told)

    async def test_in_a_namespace_that_does_not_exist_yet_it_is_not_known(self):
        body = yearly()
        body["metadata"]["namespace"] = "nowhere"
        found = await Plan(Clockwork()).of(body, coming=True)

        assert (found.verdict, found.refusals) == ("changes", ())
        assert "its namespace does not exist yet" in found.unchecked[0]

    async def test_a_quota_that_is_used_up_says_nothing_about_the_template(self):
        plan = Plan(Clockwork())
        told = "jobs.batch is forbidden: exceeded quota: jobs"
        plan.api.refuse("Job", refusal(403, "Forbidden", told))
        found = await plan.of(yearly(POD))

        assert (found.verdict, found.refusals) == ("changes", ())
        assert "a quota is used up at present" in found.unchecked[0]

    async def test_a_template_that_is_tried_already_is_told_once(self):
        world = Clockwork()
        world.server.apply(yearly(schedule="* * * * *"), "user")
        world.pass_time(90)
        found = await Plan(world).of_name("yearly")

        assert found is not None
        assert len(found.refusals) == 1
