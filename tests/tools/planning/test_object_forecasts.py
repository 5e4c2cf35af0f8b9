"""Objects of any kind, planned over the cluster in memory: what is foretold, and what is asked."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any

import httpx
import pytest

from hedgerow.kube.errors import Unreachable
from hedgerow.plan.conflict_messages import OTHER_VALUE
from hedgerow_testing.memory.answers import missing
from hedgerow_testing.memory.kind import custom
from hedgerow_tools.fields.forecast import Forecast, worst
from hedgerow_tools.planning.command import EXITS
from hedgerow_tools.planning.dry_run import MANAGED_FIELDS, NOT_SHOWN, UserApply
from hedgerow_tools.planning.helm import Release
from hedgerow_tools.planning.object_forecasts import (
    CHANGED_KIND,
    NO_KIND,
    NO_NAME,
    NO_VERSION,
    ObjectForecaster,
)
from hedgerow_tools.planning.resource_forecasts import ResourceForecaster
from hedgerow_tools.planning.simulated_cluster import NO_NAMESPACE
from runtime.world import NS, World, pods
from support.objects import definitions
from support.objects.definitions import free, of
from support.objects.drawn import WIDGET
from support.server.apiserver import Act, Exchange, Reply, refusal
from support.server.connected import connected
from tools.planning.asked import asked, conflict, contested, invalid
from tools.planning.test_command import printed

pytestmark = pytest.mark.anyio

Object = dict[str, Any]
HELM = UserApply("helm")
FORCE = replace(HELM, takes=True)
SHOP = replace(HELM, release=Release("shop", NS))
WIDGETS = "plan.example.com/v1"
GROUP, DISCOVERY = "/apis/plan.example.com", f"/apis/{WIDGETS}"
NOT_LIKE_THIS = invalid("not like this")


def of_kind(version: str, kind: str, name: str | None, more: Object, **meta: Any) -> Object:
    named = {"name": name} if name is not None else {}
    return {"apiVersion": version, "kind": kind, "metadata": {**named, **meta}, **more}


def settings(data: Object, name: str = "settings", **meta: Any) -> Object:
    return of_kind("v1", "ConfigMap", name, {"data": data}, **meta)


def widget(spec: Object, name: str = "w", version: str = WIDGETS, **meta: Any) -> Object:
    return of_kind(version, "Widget", name, {"spec": spec}, **meta)


def definition(version: str = "v1", **more: Any) -> Object:
    [known] = WIDGET["spec"]["versions"]
    return {**WIDGET, "spec": {**WIDGET["spec"], "versions": [{**known, "name": version}], **more}}


GADGET = replace(
    custom(definitions.definition("plan.example.com", "Gadget", of(status=free()))), status=False
)


def gadget(name: str = "g", **status: str) -> Object:
    return of_kind(WIDGETS, "Gadget", name, {"status": status}, namespace=NS)


def ordered(*names: str) -> Object:
    """Return the spec of a Deployment whose initContainers and variables have this order."""
    labels = {"app": "order"}
    containers = [{"name": "c", "image": "i", "env": [{"name": n, "value": "x"} for n in names]}]
    init = [{"name": name, "image": "i"} for name in names]
    pod = {"containers": containers, "initContainers": init}
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }


UNION = "Invalid value: may not be specified when `value` is not empty"
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}


def with_variable(value: Object) -> Object:
    """Return a Deployment with a variable of this value, which may be one of two fields."""
    spec = ordered()
    spec["template"]["spec"] = {
        "containers": [{"name": "c", "image": "i", "env": [{"name": "A", **value}]}]
    }
    return of_kind("apps/v1", "Deployment", "d", {"spec": spec}, namespace=NS)


class Plan:
    """A plan of several objects in turn."""

    def __init__(self, *lacks: str, applier: UserApply = HELM, served: bool = True) -> None:
        self.world = World()
        self.server = self.world.server
        self.server.serve(*([custom(WIDGET)] if served else []))
        self.api = asked(self.server, *lacks)
        self.forecaster = ObjectForecaster(
            ResourceForecaster(connected(self.api), self.world.clock, applier=applier), NS
        )

    async def of(self, *manifests: Object) -> list[Forecast]:
        version = self.server.version
        found = [await self.forecaster.forecast(manifest) for manifest in manifests]
        assert self.server.version == version
        assert [str(s) for s in self.api.exchanges if s.writes] == []
        return found

    async def last(self, *manifests: Object) -> Forecast:
        return (await self.of(*manifests))[-1]


def causes(forecast: Forecast) -> str:
    assert forecast.verdict == "failed"
    assert [found.action for found in forecast.objects] == ["refused"]
    return "; ".join(cause for refusal in forecast.refusals for cause in refusal.causes)


class TestApplied:
    async def test_a_new_object_an_equal_one_and_a_changed_one(self):
        plan = Plan()
        plan.server.apply(settings({"a": "1", "b": "1"}, namespace=NS), "helm")
        same, changed, new = await plan.of(
            settings({"a": "1", "b": "1"}), settings({"a": "2"}), settings({}, "other")
        )

        assert [one.verdict for one in (same, changed, new)] == ["nothing", "changes", "changes"]
        assert [(line.kind, line.path) for line in changed.objects[0].lines] == [
            ("changed", ".data.a"), ("removed", ".data.b"),
        ]  # fmt: skip
        assert new.objects[0].action == "created"
        assert (changed.controller, changed.field_manager) == (None, "helm")

    async def test_items_in_another_order_are_a_change_by_a_move(self):
        plan = Plan()
        [before, after] = (
            of_kind("apps/v1", "Deployment", "order", {"spec": ordered(*names)}, namespace=NS)
            for names in (("migrate", "seed"), ("seed", "migrate"))
        )
        plan.server.apply(before, "helm")
        found = await plan.last(after)

        assert found.verdict == "changes"
        assert [(line.kind, line.path) for line in found.objects[0].lines] == [
            ("moved", '.spec.template.spec.containers[name="c"].env'),
            ("moved", ".spec.template.spec.initContainers"),
        ]
        said = " ".join(printed(found).split())
        assert (
            "~ Deployment default/order would be changed ↕ .spec.template.spec.containers" in said
        )
        assert 'initContainers: [name="seed"] moves before [name="migrate"] helm' in said
        [told] = found.objects
        assert [one.kind for one in told.lines] == ["moved", "moved"]
        assert told.lines[1].new == ['[name="seed"]', '[name="migrate"]']

    async def test_holding_a_field_as_well_is_a_change(self):
        plan = Plan()
        plan.server.apply(settings({"a": "1"}, namespace=NS), "argo")
        found = await plan.last(settings({"a": "1"}))

        assert found.verdict == "changes"
        assert [line.kind for line in found.objects[0].lines] == ["shared"]

    @pytest.mark.parametrize("empty_first", [True, False])
    async def test_to_hold_a_map_that_others_fill_or_no_more_is_a_change(self, empty_first):
        plan = Plan()
        labels = {"labels": {"a": "b"}, "namespace": NS}
        by_data = [settings({}, **labels), of_kind("v1", "ConfigMap", "settings", {}, **labels)]
        by_data = by_data if empty_first else by_data[::-1]
        plan.server.apply(settings({"a": "1"}, namespace=NS), "argo")
        plan.server.apply(by_data[0], "helm")
        found = await plan.last(by_data[1])

        assert (found.verdict, found.objects[0].lines) == ("changes", ())
        assert "settings would stay as it is, and be held otherwise" in printed(found)
        plan.server.apply(by_data[1], "helm")
        assert (await plan.last(by_data[1])).verdict == "nothing"

    async def test_a_field_that_force_takes_where_no_value_shows_it_is_a_change(self):
        plan = Plan(applier=FORCE)
        plan.server.apply(settings({"a": "1"}, namespace=NS), "helm")

        def elsewhere(exchange: Exchange, act: Act) -> Reply:
            return act() if exchange.force else conflict(".stringData.a", "argo")

        plan.api.answers["apply ConfigMap"] = elsewhere
        found = await plan.last(settings({"a": "1"}))

        assert found.verdict == "changes"
        assert ".stringData.a" in printed(found)
        assert "taken from argo" in printed(found)

    async def test_a_status_that_is_no_subresource_is_planned_as_any_field(self):
        found = {}
        for applier in (HELM, FORCE):
            plan = Plan(applier=applier)
            plan.server.serve(GADGET)
            plan.server.apply(gadget(phase="New", since="1"), "argo")
            plan.server.apply(gadget(phase="New", next="1"), "helm")
            found[applier.takes] = await plan.last(gadget(phase="Old"))

        assert [(held.path, held.live) for held in contested(found[False])] == [
            (".status.phase", "New")
        ]
        assert [(line.kind, line.path) for line in found[True].objects[0].lines] == [
            ("changed", ".status.phase"), ("removed", ".status.next"),
        ]  # fmt: skip
        made = (await plan.last(gadget("new", phase="Old"))).objects[0]
        assert [line.path for line in made.lines] == [".status.phase"]

    async def test_a_status_that_is_a_subresource_is_not(self):
        plan = Plan("patch gadgets", applier=HELM)
        plan.server.serve(replace(GADGET, status=True))
        plan.server.apply(gadget(phase="New"), "helm")
        found = [await plan.last(gadget(phase="Old"))]
        plan.api.denied = set()
        found.append(await plan.last(gadget(phase="Old")))

        assert [one.verdict for one in found] == ["nothing", "nothing"]

    async def test_every_holder_of_a_contested_field_is_told(self):
        plan = Plan()
        for manager in ("argo", "flux"):
            plan.server.apply(settings({"a": "1", "b": "1"}, namespace=NS), manager)
        found = await plan.last(settings({"a": "2", "b": "1"}))

        assert found.verdict == "conflicts"
        assert {(held.path, held.manager) for held in contested(found)} == {
            (".data.a", "argo"), (".data.a", "flux"),
        }  # fmt: skip
        assert {(held.declared, held.live) for held in contested(found)} == {('"2"', '"1"')}

    async def test_what_force_takes_is_told_with_whom_from(self):
        plan = Plan(applier=FORCE)
        for manager in ("argo", "flux"):
            plan.server.apply(settings({"a": "1", "b": "1"}, namespace=NS), manager)
        found = await plan.last(settings({"a": "2"}))

        assert found.verdict == "changes"
        assert {(held.path, held.manager) for held in found.claims} == {
            (".data.a", "argo"), (".data.a", "flux"),
        }  # fmt: skip
        [line] = found.objects[0].lines
        assert [holder.manager for holder in line.after] == ["helm"]
        assert found.objects[0].forced == (".data.a",)

    async def test_where_managed_fields_were_emptied_the_server_tells_who_holds_them(self):
        plan = Plan(applier=FORCE)
        spec = {"ports": [{"port": 80, "protocol": "TCP", "name": "a"}]}
        body = of_kind("v1", "Service", "s", {"spec": spec}, namespace=NS)
        stored, _ = plan.server.apply(body, "argo")
        stored["metadata"]["managedFields"] = []
        plan.server.put(stored)
        spec = {"ports": [{"port": 80, "protocol": "TCP", "name": "b"}]}
        found = await plan.last(of_kind("v1", "Service", "s", {"spec": spec}))

        path = '.spec.ports[port=80,protocol="TCP"].name'
        assert [(held.path, held.manager) for held in found.claims] == [
            (path, "before-first-apply")
        ]
        assert found.verdict == "changes"
        assert "taken from before-first-apply" in printed(found)

    async def test_a_conflict_at_an_unknown_place_is_told_without_values(self):
        plan = Plan()
        plan.server.apply(settings({"a": "1"}, namespace=NS), "argo")
        plan.api.refuse("ConfigMap", conflict(".spec.elsewhere", "argo"))
        found = await plan.last(settings({"a": "2"}))

        assert found.verdict == "conflicts"
        assert [held.wire() for held in contested(found)] == [
            {
                "object": "ConfigMap/settings", "path": ".spec.elsewhere",
                "reason": OTHER_VALUE, "manager": "argo",
            }
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("applier", "verdict"), [(HELM, "conflicts"), (FORCE, "failed")], ids=["unforced", "forced"]
    )
    async def test_what_even_a_forced_apply_may_not_do_is_refused_if_it_is_asked_for(
        self, applier, verdict
    ):
        plan = Plan(applier=applier)
        plan.server.apply(settings({"a": "1"}, namespace=NS), "argo")

        def picky(exchange: Exchange, act: Act) -> Reply:
            return NOT_LIKE_THIS if exchange.force else act()

        plan.api.answers["apply ConfigMap"] = picky
        found = await plan.last(settings({"a": "2"}))

        assert found.verdict == verdict
        assert [(held.path, held.manager) for held in contested(found)] == (
            [(".data.a", "argo")] if verdict == "conflicts" else []
        )
        assert verdict == "conflicts" or causes(found) == "not like this"

    async def test_without_an_answer_to_what_is_forced_there_is_no_plan(self):
        plan = Plan()
        plan.server.apply(settings({"a": "1"}, namespace=NS), "argo")

        def lost(exchange: Exchange, act: Act) -> Reply:
            if exchange.force:
                raise httpx.ConnectError("nobody there")
            return act()

        plan.api.answers["apply ConfigMap"] = lost
        with pytest.raises(Unreachable):
            await plan.last(settings({"a": "2"}))

    async def test_what_force_takes_costs_one_forced_dry_run(self):
        plan = Plan(applier=FORCE)
        plan.server.apply(settings({"a": "1"}, namespace=NS), "argo")
        await plan.last(settings({"a": "2"}))

        applies = [one for one in plan.api.exchanges if one.verb == "apply"]
        assert [(one.force, one.dry_run) for one in applies] == [(False, True), (True, True)]

    async def test_what_may_not_be_taken_even_by_force_is_refused(self):
        plan = Plan(applier=FORCE)
        body = {
            "spec": {
                "selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": pods("a")},
            }
        }
        plan.server.apply(of_kind("apps/v1", "Deployment", "d", body, namespace=NS), "argo")
        other = {"matchLabels": {"app": "y"}}
        spec = {"selector": other, "template": {"metadata": {"labels": {"app": "y"}}}}
        found = await plan.last(of_kind("apps/v1", "Deployment", "d", {"spec": spec}))

        assert "immutable" in causes(found)

    async def test_hedgerows_own_kinds_go_on_with_the_operators_passes(self):
        plan = Plan()
        spec = {"routeTo": "Blue", "blueSpec": pods("blue")}
        own = of_kind("app.demo.kakao.com/v1", "BlueGreen", "demo", {"spec": spec})
        found = await plan.last(own)

        assert found.controller == "bluegreen"
        assert {str(each) for each in found.objects} >= {"BlueGreen/demo", "Service/demo"}

    async def test_what_the_user_takes_of_them_by_force_is_told(self):
        plan = Plan(applier=FORCE)
        spec = {"routeTo": "Blue", "blueSpec": pods("blue"), "greenSpec": pods("green")}
        own = of_kind("app.demo.kakao.com/v1", "BlueGreen", "demo", {"spec": spec}, namespace=NS)
        plan.server.apply(own, "argo")
        found = await plan.last({**own, "spec": {**spec, "routeTo": "Green"}})

        assert [(held.object, held.path) for held in found.claims] == [
            ("BlueGreen/demo", ".spec.routeTo")
        ]
        assert found.objects[0].forced == (".spec.routeTo",)


class TestHelm:
    """Helm 4 adds to the objects of a release, and takes over what it updated before."""

    def plan(self, *lacks: str, way: str = "create", manager: str = "helm") -> Plan:
        plan = Plan(*lacks, applier=SHOP)
        made = SHOP.marked(settings({"a": "1", "b": "1", "c": "1"}, namespace=NS))
        getattr(plan.server, way)(made, manager)
        return plan

    async def test_what_it_adds_is_no_difference(self):
        plan = self.plan(way="apply")
        found = await plan.last(settings({"a": "1", "b": "1", "c": "1"}))

        assert found.verdict == "nothing"
        assert await plan.forecaster.release([{}, widget({}), settings({})]) == SHOP.release
        assert await Plan().forecaster.release([settings({})]) is None
        plan.api.answers["read ConfigMap"] = refusal(403, "Forbidden", "no")
        assert await plan.forecaster.release([settings({})]) is None
        plan.api.answers["read ConfigMap"] = httpx.ConnectError("nobody there")
        with pytest.raises(Unreachable):
            await plan.forecaster.release([settings({})])

    async def test_what_it_updated_is_taken_over_and_goes_where_it_is_not_declared(self):
        plan = self.plan()
        found = await plan.last(settings({"a": "2", "b": "1"}))
        lines = {line.path: line.kind for line in found.objects[0].lines if line.is_change}

        assert found.verdict == "changes"
        assert lines == {".data.a": "changed", ".data.c": "removed"}
        plan.forecaster.forecaster.applier = HELM  # kubectl, as the same manager
        assert (await plan.last(settings({"a": "2"}))).verdict == "conflicts"

    async def test_others_are_in_its_way(self):
        plan = self.plan()
        plan.server.merge(settings({}, namespace=NS), {"data": {"b": "9"}}, "kubectl-edit")
        found = await plan.last(settings({"a": "2", "b": "2"}))

        assert [(held.path, held.manager) for held in contested(found)] == [
            (".data.b", "kubectl-edit")
        ]

    async def test_its_own_are_not_where_no_server_can_be_asked_either(self):
        found = await self.plan("patch configmaps").last(settings({"a": "2"}))

        assert (found.verdict, found.contested) == ("changes", ())

    async def test_the_removal_is_worked_out_where_the_server_says_nothing(self):
        plan = self.plan()
        plan.api.answers["patch ConfigMap"] = refusal(503, "ServiceUnavailable", "no")
        found = await plan.last(settings({"a": "2"}))

        assert str(found.objects[0].merged).startswith(
            "Helm takes over what client-side apply held"
        )

    async def test_what_is_not_of_the_release_is_not_imported(self):
        plan = Plan(applier=SHOP)
        plan.server.apply(settings({"a": "1"}, namespace=NS), "kubectl")
        told = causes(await plan.last(settings({"a": "1"})))

        assert "is not of the release shop in" in told
        assert "--take-ownership" in told


class TestFlux:
    @pytest.mark.parametrize(
        ("meta", "gone"),
        [
            ({}, [".data.by-kubectl", ".data.by-kubectl-edit"]),
            ({"annotations": {"kustomize.toolkit.fluxcd.io/ssa": "merge"}}, []),
        ],
    )
    async def test_what_kubectl_wrote_is_taken_over_and_goes_unless_it_is_to_be_merged(
        self, meta, gone
    ):
        plan = Plan(applier=UserApply("kustomize-controller", takes=True))
        wanted = settings({"a": "1"}, namespace=NS, **meta)
        plan.server.apply(wanted, "kustomize-controller")
        plan.server.apply(settings({"by-kubectl": "1"}, namespace=NS), "kubectl")
        for manager in ("kubectl-edit", "other"):
            plan.server.merge(wanted, {"data": {f"by-{manager}": "1"}}, manager)

        found = await plan.last(wanted)

        lines = found.objects[0].lines
        assert [(line.kind, line.path) for line in lines] == [("removed", path) for path in gone]


class TestInTurn:
    async def test_a_namespace_that_comes_before(self):
        ns = of_kind("v1", "Namespace", "new", {})
        inside = settings({"a": "1"}, namespace="new")
        before = await Plan().last(ns, inside)
        after = await Plan().last(inside)

        assert (before.verdict, before.objects[0].merged) == (
            "changes", "its namespace does not exist yet",
        )  # fmt: skip
        assert "make it first, or earlier in the files" in causes(after)

    async def test_in_a_namespace_that_comes_before_a_typo_is_seen_in_one_that_exists(self):
        place = {"metadata": {"name": "bg", "namespace": "new"}}
        spec = {"routeTo": "Blue", "blueSpec": pods("blue"), "greenSpec": pods("green")}
        group = "app.demo.kakao.com/v1"
        wrong, right = (
            {"apiVersion": group, "kind": "BlueGreen", "spec": {**spec, **more}, **place}
            for more in ({"routeTo": "Grey"}, {})
        )
        refused = await Plan().last(of_kind("v1", "Namespace", "new", {}), wrong)
        told = await Plan().last(of_kind("v1", "Namespace", "new", {}), right)

        assert "routeTo" in causes(refused)
        assert (told.verdict, told.objects[0].merged) == ("changes", NO_NAMESPACE)

    @pytest.mark.parametrize(
        "answer",
        [
            refusal(403, "Forbidden", "exceeded quota"),
            refusal(409, "AlreadyExists", "there is one of this name"),
            invalid('admission webhook "w" does not support dry run'),
        ],
    )
    async def test_what_is_so_in_that_one_alone_refuses_nothing(self, answer):
        plan = Plan()
        plan.api.refuse("ConfigMap", answer)
        found = await plan.last(
            of_kind("v1", "Namespace", "new", {}), settings({"a": "1"}, namespace="new")
        )

        assert (found.verdict, found.objects[0].merged) == ("changes", NO_NAMESPACE)

    @pytest.mark.parametrize("before", [True, False])
    async def test_an_object_without_which_the_server_does_not_know(self, before):
        plan = Plan()
        named = {"kind": "configmaps", "name": "role"}
        plan.api.refuse("Service", Reply(404, {**missing("role").status, "details": named}))
        service = of_kind("v1", "Service", "s", {"spec": {"ports": [{"port": 1}]}})
        found = await plan.last(*([settings({}, "role")] if before else []), service)

        if before:
            merged = '"role" not found: it is made earlier in the files'
            assert (found.verdict, found.objects[0].merged) == ("changes", merged)
        else:
            assert "make it first, or earlier in the files" in causes(found)

    async def test_a_kind_that_is_defined_before(self):
        found = await Plan(served=False).last(definition(), widget({"size": 2}))

        assert (found.verdict, found.objects[0].merged) == ("changes", NO_KIND)
        assert found.namespace == NS
        assert "the server does not serve Widget of plan.example.com/v1" in causes(
            (await Plan(served=False).of(widget({"size": 2}), definition()))[0]
        )

    async def test_a_version_that_is_defined_before(self):
        plan = Plan()
        plan.server.apply(widget({"size": 2}, namespace=NS), "helm")
        version = "plan.example.com/v2"
        old, new = (
            await plan.of(definition("v2"), widget({"size": 3}, version=version)),
            await plan.last(widget({"size": 3}, "other", version=version)),
        )

        assert (old[-1].objects[0].action, old[-1].objects[0].merged) == ("configured", NO_VERSION)
        assert (new.objects[0].action, new.objects[0].merged) == ("created", NO_VERSION)

    async def test_a_kind_whose_definition_changes_before(self):
        accepted, refused = (
            (await Plan().of(definition(), widget({"size": 2})))[1],
            (await Plan().last(definition(), widget({"nope": 1}))),
        )

        assert "the server knows the present one" in accepted.unchecked[0]
        assert refused.verdict == "changes"
        assert str(refused.objects[0].merged).startswith(f"{CHANGED_KIND}: ")


class TestNotAtAll:
    @pytest.mark.parametrize(
        ("manifest", "said"),
        [
            (of_kind("v1", "Pod", None, {}, generateName="x-"), "takes no generateName (x-)"),
            (of_kind("v1", "Pod", "..", {}), "Pod/..: .. is no name"),
            (of_kind("v1", "Pod", "x", {}, namespace=".."), "metadata.namespace is no string"),
            (of_kind("v1", "Pod", "x", {}, labels=7), "metadata.labels has what is no string"),
            ({"a": "b"}, "it has no apiVersion or no kind"),
            (of_kind("v1", "Pod", "a/b", {}), "Pod/a/b: a/b is no name"),
            (of_kind("../v1", "Pod", "x", {}), "the server does not serve Pod of ../v1"),
            (of_kind("v1", "Nope", "x", {}), "the server does not serve Nope of v1"),
        ],
    )
    async def test_what_cannot_be_applied_is_refused_by_itself(self, manifest, said):
        refused, new = await Plan().of(manifest, settings({}))

        assert said in causes(refused)
        assert new.verdict == "changes"

    async def test_it_is_named_as_far_as_it_has_a_name(self):
        found = await Plan().last(of_kind("v1", "Pod", None, {}, generateName="x-"))

        assert found.name == NO_NAME

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (refusal(500, "InternalError", "failed calling webhook"), "failed calling webhook"),
            (refusal(403, "Forbidden", "not here"), "not here"),
            (invalid("no", field="spec.x", message="wrong"), "spec.x: wrong"),
        ],
    )
    async def test_what_the_server_refuses_is_told_in_its_words(self, answer, said):
        plan = Plan()
        plan.api.refuse("ConfigMap", answer)

        assert causes(await plan.last(settings({}))) == said

    async def test_without_an_answer_there_is_no_plan(self):
        plan = Plan()
        plan.api.refuse("ConfigMap", httpx.ConnectError("nobody there"))
        with pytest.raises(Unreachable):
            await plan.of(settings({}))

        plan.api.answers[DISCOVERY] = httpx.ConnectError("nobody there")
        with pytest.raises(Unreachable):
            await plan.of(widget({}))

    async def test_an_object_without_an_answer_in_time_leaves_the_others_planned(self):
        plan = Plan()
        plan.api.refuse("ConfigMap", httpx.ReadTimeout("it hangs"))
        slow, new = await plan.of(settings({}), widget({"size": 2}))

        assert (slow.verdict, new.verdict, worst([slow, new])) == ("partial", "changes", "partial")
        assert EXITS["partial"] == 5
        assert "it hangs" in str(slow.unanswered)
        out = printed(slow, new)
        assert (
            "? ConfigMap default/settings is not planned: the server gave no answer in time" in out
        )
        assert "--request-timeout waits longer" in out
        assert "1 without an answer" in out

    async def test_a_server_that_hangs_is_not_asked_about_everything(self):
        plan = Plan()
        plan.api.refuse("ConfigMap", httpx.ReadTimeout("it hangs"))
        with pytest.raises(Unreachable):
            await plan.of(*(settings({}, f"s{number}") for number in range(9)))

    async def test_a_group_that_gives_no_answer_is_asked_once(self):
        plan, asked = Plan(), list[int]()
        told = refusal(503, "ServiceUnavailable", "the aggregated server is down")
        plan.api.answers[DISCOVERY] = told
        for name in ("w", "other"):
            assert "the aggregated server is down" in causes(await plan.last(widget({}, name)))
            asked.append([one.key for one in plan.api.exchanges].count(DISCOVERY))
        assert asked[0] == asked[1] > 0

    async def test_without_the_right_to_look_it_is_refused(self):
        assert "you cannot get configmaps" in causes(
            await Plan("get configmaps").last(settings({}))
        )

    async def test_without_the_right_to_patch_it_is_merged_conflicts_included(self):
        plan, forced = Plan("patch configmaps"), Plan("patch configmaps", applier=FORCE)
        for each in (plan, forced):
            each.server.apply(settings({"a": "1"}, namespace=NS), "argo")
        new, held = await plan.of(settings({}, "other"), settings({"a": "2"}))
        taken = await forced.last(settings({"a": "2"}))

        assert {one.objects[0].merged for one in (new, held, taken)} == {"you may not patch it"}
        assert held.verdict == "conflicts"
        assert [(held.path, held.manager) for held in taken.claims] == [(".data.a", "argo")]
        assert [h.manager for h in taken.objects[0].lines[0].after] == ["helm"]

    async def test_a_webhook_that_cannot_be_asked_in_a_dry_run_refuses_nothing(self):
        plan = Plan()
        words = 'admission webhook "x.example" does not support dry run'
        plan.api.refuse("ConfigMap", refusal(400, "BadRequest", words))
        found = await plan.last(settings({}))

        assert (found.verdict, found.objects[0].merged) == (
            "changes", f"{words}, and so cannot be asked",
        )  # fmt: skip

    async def test_that_it_is_being_deleted_is_told(self):
        plan = Plan()
        body = settings({"a": "1"}, namespace=NS, finalizers=["x.example/y"])
        plan.server.apply(body, "helm")
        plan.server.delete(body)

        assert "it is being deleted" in (await plan.last(body)).unchecked[0]


class TestUnserved:
    """Managed fields of API versions that are no longer served."""

    def plan(self, *served: str) -> Plan:
        plan = Plan()
        versions = {"versions": [{"groupVersion": one} for one in served]}
        plan.api.answers[GROUP] = Reply(200, versions) if served else refusal(404, "NotFound")
        stored, _ = plan.server.apply(widget({"size": 2}, namespace=NS), "old")
        stored["metadata"]["managedFields"][0]["apiVersion"] = "plan.example.com/v1alpha1"
        plan.server.put(stored)
        plan.api.refuse("Widget", refusal(500, "InternalError", "request to convert CR"))
        return plan

    async def test_that_they_are_in_the_way_is_told_with_the_remedy(self):
        told = causes(await self.plan(WIDGETS).last(widget({"size": 3})))

        assert told.startswith("request to convert CR; ")
        assert "recorded in plan.example.com/v1alpha1, which the server does not serve" in told
        assert f"`hedgerow adopt --repair widget.plan.example.com/w -n {NS} --yes`" in told

    @pytest.mark.parametrize("served", [(WIDGETS, "plan.example.com/v1alpha1"), ()])
    async def test_those_that_are_served_or_may_be_are_not(self, served):
        plan = self.plan(*served)

        assert causes(await plan.last(widget({"size": 3}))) == "request to convert CR"


class TestBesideTheServersWords:
    """What hedgerow knows of a refusal: why it comes, who holds what is in the way, what to do."""

    async def test_a_file_with_managed_fields_is_refused_with_the_remedy(self):
        plan = Plan()
        body = of_kind("v1", "Secret", "s", {"data": {"a": "aHVudGVyMg=="}}, managedFields=[])

        assert causes(await plan.last(body)) == MANAGED_FIELDS
        assert [exchange for exchange in plan.api.exchanges if exchange.writes] == []

    @pytest.mark.parametrize("applier", [HELM, FORCE])
    @pytest.mark.parametrize(
        ("writer", "spec", "said"),
        [
            (
                "argo",
                {"value": "x"},
                (
                    '.env[name="A"].value stays in the object, since argo holds it: `hedgerow adopt'
                    " deployment.apps/d -n default --from argo --to helm --field"
                ),
            ),
            ("helm", {"value": "x"}, ""),
        ],
    )
    async def test_what_is_in_the_way_has_its_holder_and_a_remedy(
        self, applier, writer, spec, said
    ):
        plan = Plan(applier=applier)
        plan.server.apply(with_variable(spec), writer)
        where = "spec.template.spec.containers[0].env[0].valueFrom"
        plan.api.refuse("Deployment", invalid("no", field=where, message=UNION))
        told = causes(await plan.last(with_variable({"valueFrom": FIELD})))

        assert told.startswith(f"{where}: {UNION}")
        assert said in told
        assert bool(said) == ("stays in the object" in told)

    async def test_so_has_what_nobody_holds(self):
        plan = Plan()
        body = with_variable({"value": "x"})
        stored, _ = plan.server.apply(body, "argo")
        [entry] = stored["metadata"]["managedFields"]
        items = entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
        del items['k:{"name":"c"}']["f:env"]
        plan.server.put(stored)
        where = "spec.template.spec.containers[0].env[0].valueFrom"
        plan.api.refuse("Deployment", invalid("no", field=where, message=UNION))
        told = causes(await plan.last(with_variable({"valueFrom": FIELD})))

        assert "since nobody holds it: `hedgerow release deployment.apps/d -n default" in told
        assert "--unowned --to helm --field" in told

    async def test_words_of_several_lines_are_several_lines(self):
        plan = Plan()
        plan.api.refuse("ConfigMap", refusal(400, "BadRequest", "policy says:\n- no\n- never\n"))
        out = printed(await plan.last(settings({})))

        assert "\n    policy says:\n    |- no\n    |- never\n" in out


class TestSecrets:
    def secret(self, value: str) -> Object:
        return of_kind(
            "v1", "Secret", "s", {"data": {"a": b64encode(value.encode()).decode()}}, namespace=NS
        )

    async def test_no_value_is_told(self):
        plan, forced = Plan(), Plan(applier=FORCE)
        for each in (plan, forced):
            each.server.apply(
                of_kind("v1", "Secret", "s", {"data": {"a": "cGFzc3dvcmQ="}}, namespace=NS), "argo"
            )
        body = of_kind("v1", "Secret", "s", {"data": {"a": "b3RoZXI="}}, namespace=NS)
        told = repr(await plan.last(body)) + repr(await forced.last(body))

        assert "(hidden)" in told
        assert "b3RoZXI=" not in told
        assert "cGFzc3dvcmQ=" not in told

    async def test_not_in_the_servers_words_either(self):
        plan = Plan()
        plan.api.warnings = ("hunter2 is a bad password",)
        warned = await plan.last(self.secret("hunter2"))
        plan.api.refuse("Secret", refusal(403, "Forbidden", "hunter2 is a bad password"))
        refused = await plan.last(self.secret("hunter2"))

        assert warned.objects[0].warnings == (NOT_SHOWN,)
        assert "hunter2" not in repr(warned)
        assert "refused with 403" in causes(refused)
        assert "hunter2" not in repr(refused)
        assert "aHVudGVyMg" not in repr(warned) + repr(refused)

    async def test_a_reason_that_cannot_hold_one_is_told(self):
        plan = Plan()
        words = 'secrets "s" is forbidden: User "x" cannot patch resource "secrets" in API group ""'
        said = f'{words} in the namespace "default"'
        plan.api.refuse("Secret", refusal(403, "Forbidden", said))

        assert causes(await plan.last(self.secret("hunter2"))) == said
