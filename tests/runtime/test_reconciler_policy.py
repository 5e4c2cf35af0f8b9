"""What a user yields stays with others, what a user claims is taken back, and nothing besides."""

from __future__ import annotations

import copy
import gc
from math import inf
from typing import Any

import pytest

from hedgerow.plan.yield_and_claim import CLAIM, YIELD, FieldPolicy
from hedgerow.runtime.namespaces import LOOK_AGAIN
from runtime.scenes import IMAGE, MOST_REPEATS, annotate, fight, settled, take_image, writes_of
from runtime.world import World, pods

Object = dict[str, Any]
BLUE = "demoblue-deployment"
UNSAID: tuple[Object, ...] = (
    {"imagePullSecrets": [{"name": ""}]},
    {"imagePullSecrets": [{"name": "a"}, {"name": ""}]},
    {"imagePullSecrets": []},
    {"schedulerName": ""},
    {"nodeSelector": {}, "tolerations": [], "volumes": [], "securityContext": {}},
    {"hostNetwork": False, "serviceAccountName": ""},
    {"volumes": [{"name": "v", "emptyDir": {"medium": ""}}]},
)
OF_CONTAINERS: tuple[Object, ...] = (
    {"terminationMessagePath": ""},
    {"livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 0, "timeoutSeconds": 0}},
    {"command": [], "args": [], "env": [{"name": "a", "value": ""}], "resources": {}},
    {"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "x", "apiVersion": ""}}}]},
)
TAKEN = [(f"Deployment/{BLUE}", IMAGE, "helm")]

pytestmark = pytest.mark.anyio


def image(world: World) -> str:
    return world.the("Deployment", BLUE)["spec"]["template"]["spec"]["containers"][0]["image"]


def holders(world: World, kind: str = "Deployment", name: str = BLUE) -> dict[str, str]:
    """Return who has the image in his entry."""
    found = {}
    for entry in world.the(kind, name)["metadata"]["managedFields"]:
        containers = (
            entry["fieldsV1"].get("f:spec", {}).get("f:template", {}).get("f:spec", {})
        ).get("f:containers", {})
        if "f:image" in containers.get('k:{"name":"blue"}', {}):
            found[entry["manager"]] = entry["operation"]
    return found


class TestMemory:
    async def test_what_is_compiled_of_an_annotation_goes_with_the_pass(self):
        """Of the longest one that is 30 KB for each child, which no budget counts."""
        world = await settled()
        annotate(world, yields="Deployment/*: spec.replicas, spec.template.**; Service/*: spec.*")
        await world.settle()
        world.edit("Service", "demo", {"metadata": {"annotations": {"of": "somebody"}}})
        await world.settle()

        gc.collect()
        policies = [one for one in gc.get_objects() if isinstance(one, FieldPolicy)]
        assert [one for one in policies if one.yields] == []


class TestYield:
    async def test_what_is_yielded_is_contested_no_more_and_left(self):
        world = await settled()
        take_image(world)
        await world.settle()
        assert world.contested() == TAKEN

        annotate(world, yields=f"Deployment/*: {IMAGE}")
        await world.settle()

        assert (world.contested(), world.condition("Contested")) == ([], "")
        assert image(world) == "theirs:9"

    async def test_what_another_holds_with_our_value_is_given_up(self):
        world = await settled()
        container = {"name": "blue", "image": "example/echo:1"}
        spec = {"template": {"spec": {"containers": [container]}}}
        world.server.apply({**world.target("Deployment", BLUE), "spec": spec}, "helm")
        await world.settle()
        assert holders(world) == {"hedgerow-bluegreen": "Apply", "helm": "Apply"}

        annotate(world, yields=f"*/*: {IMAGE}")
        await world.settle()

        assert holders(world) == {"helm": "Apply"}
        assert image(world) == "example/echo:1"

    async def test_what_nobody_else_holds_stays_declared(self):
        world = await settled()

        written = await writes_of(world, lambda: annotate(world, yields=f"Deployment/*: {IMAGE}"))

        assert written == []
        assert holders(world) == {"hedgerow-bluegreen": "Apply"}

    async def test_what_its_holder_lets_go_is_declared_again(self):
        world = await settled(blueSpec=pods("blue", terminationGracePeriodSeconds=7))
        annotate(world, yields="Deployment/*: spec.template.spec.terminationGracePeriodSeconds")
        target = world.target("Deployment", BLUE)
        theirs = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 9}}}}
        world.server.apply({**target, **theirs}, "helm", force=True)
        await world.settle()
        spec = world.the("Deployment", BLUE)["spec"]["template"]["spec"]
        assert spec["terminationGracePeriodSeconds"] == 9

        world.server.apply(target, "helm")
        await world.settle()

        spec = world.the("Deployment", BLUE)["spec"]["template"]["spec"]
        assert spec["terminationGracePeriodSeconds"] == 7

    async def test_without_the_word_the_holder_that_stays_is_reported(self):
        world = await settled()
        take_image(world)
        annotate(world, yields=f"Deployment/*: {IMAGE}")
        await world.settle()

        annotate(world, yields=None)
        await world.settle()

        assert world.contested() == TAKEN


class TestClaim:
    async def test_what_is_claimed_is_taken_back_with_an_event(self):
        world = await settled()
        take_image(world)
        await world.settle()

        annotate(world, claims=f"Deployment/{BLUE}: {IMAGE}")
        await world.settle()

        assert (image(world), world.contested()) == ("example/echo:1", [])
        assert holders(world) == {"hedgerow-bluegreen": "Apply"}
        assert world.events().count("FieldClaimed") == 1
        assert world.condition("Ready") != "False/FieldConflict"

    async def test_only_what_is_claimed_is_forced(self):
        world = await settled(blueSpec=pods("blue", terminationGracePeriodSeconds=7))
        take_image(world)
        grace = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 9}}}}
        world.edit("Deployment", BLUE, grace)
        await world.settle()

        annotate(world, claims=f"Deployment/*: {IMAGE}")
        await world.settle()

        spec = world.the("Deployment", BLUE)["spec"]["template"]["spec"]
        assert (image(world), spec["terminationGracePeriodSeconds"]) == ("example/echo:1", 9)
        (left,) = world.contested()
        assert left[1:] == (".spec.template.spec.terminationGracePeriodSeconds", "kubectl-edit")
        (forced,) = [sent for sent in world.cluster.writes if sent.force]
        assert forced.body["metadata"]["resourceVersion"]

    async def test_a_forced_write_that_meets_news_is_refused_and_decided_anew(self):
        world = await settled()
        take_image(world)
        await world.settle()
        annotate(world, claims=f"Deployment/*: {IMAGE}")
        world.deliver(kind="BlueGreen")
        selector = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 3}}}}
        world.edit("Deployment", BLUE, selector)

        await world.settle()

        spec = world.the("Deployment", BLUE)["spec"]["template"]["spec"]
        assert (image(world), spec["terminationGracePeriodSeconds"]) == ("example/echo:1", 3)

    async def test_without_a_conflict_nothing_is_forced(self):
        world = await settled()

        assert await writes_of(world, lambda: annotate(world, claims="*/*: **")) == []

    async def test_a_fight_is_given_up(self):
        world = await settled()
        annotate(world, claims=f"Deployment/*: {IMAGE}")
        await world.settle()
        await fight(world, lambda: take_image(world))

        assert 2 < sum(sent.force for sent in world.cluster.writes) <= MOST_REPEATS + 2
        assert world.events().count("FieldClaimed") == 1
        assert image(world) == "theirs:9"
        assert world.condition("Ready") == "False/NotSettling"

    async def test_what_is_claimed_from_another_or_later_is_told_anew(self):
        world = await settled()
        annotate(world, claims=f"Deployment/*: {IMAGE}")
        take_image(world)
        await world.settle()
        container = {"name": "blue", "image": "theirs:9"}
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}

        world.edit("Deployment", BLUE, body, "kubectl-edit")
        await world.settle()
        assert world.events().count("FieldClaimed") == 2

        world.server.now += 601
        take_image(world)
        await world.settle()
        assert world.events().count("FieldClaimed") == 3

    async def test_a_field_that_keeps_vanishing_is_put_back_while_it_is_claimed(self):
        world = await settled(blueSpec=pods("blue", nodeSelector={"disk": "ssd"}))
        annotate(world, claims="Deployment/*: .spec.template.spec.nodeSelector")
        await world.settle()

        for _ in range(3):
            gone = {"spec": {"template": {"spec": {"nodeSelector": None}}}}
            world.edit("Deployment", BLUE, gone)
            await world.settle()

        spec = world.the("Deployment", BLUE)["spec"]["template"]["spec"]
        assert spec["nodeSelector"] == {"disk": "ssd"}
        assert world.contested() == []
        assert world.events().count("FieldRestored") == 1


class TestMisread:
    @pytest.mark.parametrize("field_policy", [{"yields": "nonsense"}, {"claims": "Deployment/*:"}])
    async def test_it_is_told_and_nothing_that_is_there_is_touched(
        self, field_policy: dict[str, str]
    ):
        world = await settled()
        annotate(world, **field_policy)
        world.apply(blueSpec=pods("blue", "mine:2"))
        await world.settle()

        assert world.condition("Stalled") == "True/InvalidAnnotation"
        assert image(world) == "example/echo:1"
        assert "InvalidAnnotation" in world.events()

        annotate(world, yields=None, claims=None)
        await world.settle()
        assert (image(world), world.condition("Stalled")) == ("mine:2", "")


class TestUnmatched:
    def message(self, world: World) -> str:
        return {c["type"]: c["message"] for c in world.status()["conditions"]}["Ready"]

    async def test_a_term_that_means_nothing_is_told_by_ready_and_nothing_else_is_written(self):
        world = await settled()
        before = self.message(world)

        term = "Deployment/*: spec.template.spec.containers[*].imgae"
        written = await writes_of(world, lambda: annotate(world, yields=term))

        assert self.message(world) == f"{before}; no field matches {YIELD}: {term}"
        assert [str(sent) for sent in world.cluster.writes][-1:] == written
        assert world.condition("Stalled") == ""
        assert await writes_of(world, lambda: None) == []
        assert await writes_of(world, world.restart) == []

        annotate(world, yields=None)
        await world.settle()
        assert self.message(world) == before

    async def test_it_is_told_while_the_field_that_was_meant_is_contested(self):
        world = await settled()
        take_image(world)
        annotate(world, claims=f"Deployment/nobody: {IMAGE}")
        await world.settle()

        assert world.condition("Ready") == "False/FieldConflict"
        assert self.message(world).endswith(f"matches {CLAIM}: Deployment/nobody: {IMAGE}")


class TestSpelling:
    async def test_what_a_co_owner_spells_otherwise_is_no_conflict(self):
        def cpu(amount: str) -> Object:
            limits = {"limits": {"cpu": amount}}
            return {"containers": [{"name": "blue", "image": "a", "resources": limits}]}

        world = await settled(blueSpec=cpu("500m"))
        theirs = {"spec": {"template": {"spec": cpu("1")}}}
        world.server.apply({**world.target("Deployment", BLUE), **theirs}, "helm", force=True)
        await world.settle()
        assert world.contested() != []

        world.apply(blueSpec=cpu("1000m"))
        await world.settle()

        assert world.contested() == []
        assert await writes_of(world, world.restart) == []


def rewriting(world: World, to: str, **fields: Any) -> None:
    """Let admission change the image of every Deployment that we apply, and fields of its pods."""
    apply = world.server.apply

    def admitted(body: Object, manager: str, **how: Any) -> Any:
        body = copy.deepcopy(body)
        if manager == "hedgerow-bluegreen" and body["kind"] == "Deployment":
            spec = body["spec"]["template"]["spec"]
            spec |= fields
            for container in spec["containers"]:
                container["image"] = to
        return apply(body, manager, **how)

    world.server.apply = admitted  # type: ignore[method-assign]


class TestRewrittenByAdmission:
    async def test_it_is_reported_once_and_not_fought(self):
        world = World()
        rewriting(world, "mirror/echo:1")
        world.apply()
        await world.settle()

        assert world.condition("RewrittenByAdmission") == "True/ChangedOnTheWay"
        conditions = {c["type"]: c["message"] for c in world.status()["conditions"]}
        told = conditions["RewrittenByAdmission"]
        assert f"Deployment/{BLUE}: {IMAGE} was changed to mirror/echo:1" in told
        assert world.events() == ["RewrittenByAdmission"]
        assert world.contested() == []

        def restart() -> None:
            world.restart()
            rewriting(world, "mirror/echo:2")  # a tag that moved meanwhile: an apply rolls all pods

        before = world.server.version
        assert await writes_of(world, restart) == []
        assert world.server.version == before

    @pytest.mark.parametrize("said", [*UNSAID, *OF_CONTAINERS], ids=str)
    async def test_it_is_not_said_of_what_the_server_itself_fills_in_or_leaves_out(self, said):
        spec = pods("blue", **(said if said in UNSAID else {}))
        spec["containers"][0] |= said if said in OF_CONTAINERS else {}
        world = await settled(blueSpec=spec, greenSpec=None)

        assert world.events() == []
        assert world.condition("RewrittenByAdmission") == ""
        assert await writes_of(world, world.life.look) == []

    async def test_an_empty_key_is_settled_by_looking(self):
        said = {"imagePullSecrets": [{"name": ""}]}
        world = await settled(blueSpec=pods("blue", **said), greenSpec=None)

        assert await writes_of(world, world.restart) == []

    async def test_what_is_zero_or_false_is_a_value_that_admission_may_change(self):
        world = World()
        rewriting(world, "example/echo:1", terminationGracePeriodSeconds=30, hostNetwork=True)
        world.apply(
            blueSpec=pods("blue", terminationGracePeriodSeconds=0, hostNetwork=False),
            greenSpec=None,
        )
        await world.settle()

        told = {c["type"]: c["message"] for c in world.status()["conditions"]}
        assert ".spec.template.spec.terminationGracePeriodSeconds" in told["RewrittenByAdmission"]
        assert ".spec.template.spec.hostNetwork" in told["RewrittenByAdmission"]

    async def test_it_goes_with_its_cause(self):
        world = World()
        rewriting(world, "mirror/echo:1")
        world.apply(greenSpec=None)
        await world.settle()

        world.apply(blueSpec=pods("blue", "mirror/echo:1"), greenSpec=None)
        await world.settle()

        assert world.condition("RewrittenByAdmission") == ""


class TestAllowed:
    """A claim counts only where the namespace allows claims."""

    CLAIMED = f"Deployment/*: {IMAGE}"

    async def contested(self) -> World:
        world = await settled()
        world.claiming["default"], world.claims_again = False, LOOK_AGAIN
        take_image(world)
        annotate(world, claims=self.CLAIMED)
        await world.settle()
        return world

    async def test_where_it_does_not_nothing_is_taken_and_the_reason_is_told(self):
        world = await self.contested()

        assert image(world) == "theirs:9"
        assert world.contested() == TAKEN
        stalled = [c for c in world.status()["conditions"] if c["type"] == "Stalled"]
        assert [c["reason"] for c in stalled] == ["ClaimRefused"]
        assert (
            "kubectl label namespace default hedgerow.dev/allow-claims=true"
            in (stalled[0]["message"])
        )
        assert len([line for line in world.events() if "ClaimRefused" in line]) == 1

    async def test_it_is_taken_within_a_minute_after_the_namespace_is_labelled(self):
        world = await self.contested()
        world.claiming["default"] = True
        await world.settle()

        assert image(world) == "example/echo:1"
        assert world.condition("Stalled") == ""

    async def test_nor_does_it_stay_allowed_for_longer(self):
        world = await settled()
        world.claims_again = LOOK_AGAIN
        annotate(world, claims=self.CLAIMED)
        await world.settle()
        world.claiming["default"] = False
        await world.settle()
        take_image(world)
        await world.settle()

        assert image(world) == "theirs:9"

    async def test_who_claims_nothing_is_not_looked_at_for_that(self):
        world = await settled()
        annotate(world, yields=self.CLAIMED)
        await world.settle()

        assert world.life.next_due == inf

    async def test_while_it_cannot_be_read_nothing_is_done_for_who_claims(self):
        world = World()
        world.claiming["default"] = None
        world.apply()
        annotate(world, claims=self.CLAIMED)
        await world.settle()
        assert world.get("Service") is None

        world.claiming["default"] = True
        world.life.look()
        await world.settle()
        assert world.get("Service") is not None

    async def test_who_claims_nothing_need_not_wait_for_it(self):
        world = World()
        world.claiming["default"] = None
        world.apply()
        annotate(world, yields=self.CLAIMED)
        await world.settle()

        assert world.get("Service") is not None
