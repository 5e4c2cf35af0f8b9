"""Serving: what Available, Ready and Stalled say of a workload, and ports that no pod has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers import blues, caches
from controllers.switching import CHECKED, SwitchWorld, pods
from controllers.test_guestbook import book, config
from controllers.test_guestbook import deployment as book_deployment
from hedgerow.contract import Desired, Keep
from hedgerow.controllers import guestbook, memcached
from hedgerow.controllers.bluegreen.controller import compose
from hedgerow.plan.conditions import conclude
from hedgerow.workloads import DEADLINE_EXCEEDED, PAUSED, PORT_MISSING, missing_port, why_stuck
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment, Service
from support.objects.ports import HTTP, LACKS_HTTP, PORTS, TO_DNS, TO_HTTP

Object = dict[str, Any]

EXCEEDED = {"type": "Progressing", "status": "False", "reason": DEADLINE_EXCEEDED}
BAKE = {"promotion": "WhenAvailable", "bakeSeconds": 60, "bakeUnavailableSeconds": 10}
STAYS = "; the Service stays on Blue"


def concluded(desired: Desired) -> dict[str, str]:
    """Return the conditions as a pass writes them, by type."""
    assert desired.status is not None
    return {c.type: f"{c.status}/{c.reason}" for c in conclude(desired.status.conditions, (), ())}


def with_status(live: View, **status: Any) -> Any:
    return type(live)({**live.raw, "status": {**live.raw["status"], **status}})


def rolling(colour: str, *, wanted: int = 3, serves: bool = True, **status: Any) -> Deployment:
    """A Deployment in the middle of a rolling update: one new pod does not come up."""
    available = {"type": "Available", "status": str(serves)}
    counts = {"replicas": wanted + 1, "updatedReplicas": 1, "availableReplicas": wanted * serves}
    live = blues.deployment(colour, generation=2, seen=2)
    full = {**live.raw, "spec": {"replicas": wanted}}
    return with_status(Deployment(full), conditions=[available], **counts, **status)


def exceeded(live: View) -> Any:
    """Return a Deployment whose rollout is over its deadline."""
    return with_status(live, conditions=[*live.raw["status"]["conditions"], EXCEEDED])


def paused(live: View) -> Any:
    """Return a Deployment that somebody paused, as its controller says."""
    said = {"type": "Progressing", "status": "Unknown", "reason": PAUSED}
    held = type(live)({**live.raw, "spec": {**live.raw["spec"], "paused": True}})
    return with_status(held, conditions=[*live.raw["status"]["conditions"], said])


def refused(live: View) -> Any:
    """Return a Deployment whose pods the API server does not admit."""
    told = 'pods "p-5f-x2k4m" is forbidden: exceeded quota: q'
    said = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": told}
    return with_status(live, conditions=[*live.raw["status"]["conditions"], said])


REFUSED = 'pods "…" is forbidden: exceeded quota: q'
OVERDUE = f"its rollout has made no progress for spec.progressDeadlineSeconds: {REFUSED}"


DOWN = blues.deployment("blue", up=0)


@dataclass(frozen=True)
class Told:
    """What a BlueGreen that has Blue routed says."""

    reason: str
    blue: Deployment
    available: str
    ready: str
    stalled: bool = False


SERVING, LACKS = "True/Serving", "False/Unavailable"
TOLD = [
    Told("rolled out", blues.deployment("blue"), SERVING, SERVING),
    Told("a rolling update", rolling("blue"), SERVING, LACKS),
    Told(
        "a new template that its controller has not seen",
        blues.deployment("blue", generation=2),
        SERVING,
        LACKS,
    ),
    Told(
        "scaled up, and the new pods are not there yet",
        Deployment({**blues.deployment("blue").raw, "spec": {"replicas": 3}}),
        SERVING,
        LACKS,
    ),
    Told(
        "a rolling update that is over its deadline",
        exceeded(rolling("blue")),
        SERVING,
        f"False/{DEADLINE_EXCEEDED}",
        stalled=True,
    ),
    Told("too few pods", rolling("blue", serves=False), LACKS, LACKS),
    Told(
        "too few pods, for longer than the deadline",
        exceeded(rolling("blue", serves=False)),
        LACKS,
        f"False/{DEADLINE_EXCEEDED}",
        stalled=True,
    ),
    Told(
        "a change after the deadline, which its controller has not seen",
        exceeded(blues.deployment("blue", generation=2, up=0)),
        LACKS,
        LACKS,
    ),
    Told(
        "a rolling update that somebody paused",
        paused(rolling("blue")),
        SERVING,
        f"False/{PAUSED}",
        stalled=True,
    ),
    Told(
        "paused without a deadline, of which no condition tells",
        Deployment({**rolling("blue").raw, "spec": {"replicas": 3, "paused": True}}),
        SERVING,
        f"False/{PAUSED}",
        stalled=True,
    ),
    Told("paused, with too few pods of the newest template", paused(DOWN), LACKS, LACKS),
    Told("paused when it was rolled out", paused(blues.deployment("blue")), SERVING, SERVING),
    Told(
        "rolled out after all",
        exceeded(blues.deployment("blue")),
        SERVING,
        SERVING,
    ),
]


class TestAvailable:
    @pytest.mark.parametrize("case", TOLD, ids=lambda case: case.reason)
    def test_it_is_whether_the_routed_colour_serves_now(self, case):
        desired = compose(blues.bluegreen(), blues.observed(blues.service("Blue"), case.blue))
        said = concluded(desired)

        assert (said["Available"], said["Ready"]) == (case.available, case.ready)
        waits = not case.stalled and case.ready == LACKS
        assert ("Stalled" in said, "Reconciling" in said) == (case.stalled, waits)

    def test_a_refused_template_takes_nothing_from_what_serves(self):
        refused = frozenset({("Deployment", "demoblue-deployment")})
        there = (blues.service("Blue"), exceeded(rolling("blue")))
        desired = compose(blues.bluegreen(), blues.observed(*there, refused=refused))

        assert blues.says(desired, "Available") == SERVING
        assert blues.says(desired) == LACKS  # the pass says Rejected or Forbidden
        assert blues.says(desired, "Stalled") == ""

    def test_it_says_what_the_pods_lack(self):
        there = (blues.service("Blue"), rolling("blue", serves=False))
        pod = blues.pod("blue", "p", "ErrImagePull")
        desired = compose(blues.bluegreen(), blues.observed(*there, pod))

        assert (
            blues.message(desired, "Available")
            == "Blue: 1 of 3 replicas are up to date, pod p: ErrImagePull"
        )


@dataclass(frozen=True)
class Reason:
    """A reason of Ready, how it comes about, and whether somebody has to act."""

    reason: str
    ended: bool
    spec: Object
    does: tuple[str, ...] = ()


PATIENT = {"promotion": "WhenAvailable"}
NAMED = {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
REASONS = [
    Reason("Serving", False, {}),
    Reason("WaitingForAvailability", False, PATIENT, ("down", "flip")),
    Reason(DEADLINE_EXCEEDED, True, PATIENT, ("down", "deadline", "flip")),
    Reason(PORT_MISSING, True, PATIENT | NAMED, ("flip",)),
    Reason("Checking", False, CHECKED, ("flip",)),
    Reason("CheckFailed", True, CHECKED, ("flip", "fail")),
    Reason("TemplateNotChecked", True, CHECKED, ("change",)),
    Reason("Held", False, {"hold": True}, ("flip",)),
    Reason("Overlapping", False, {"switch": "Overlap"}, ("flip",)),
    Reason("Baking", False, BAKE, ("flip",)),
    Reason("RolledBack", True, BAKE, ("flip", "down", "patience")),
    Reason("Unavailable", False, {}, ("flip", "down")),
]


def with_ports(image: str, *ports: Object) -> Object:
    return {"containers": [{"name": "c", "image": image, "ports": list(ports)}]}


class TestStalled:
    @pytest.mark.parametrize("case", REASONS, ids=lambda case: case.reason)
    def test_it_is_where_somebody_has_to_act(self, case):
        world = SwitchWorld(blueSpec=with_ports("v1", HTTP), **case.spec).settle()
        world.finish().settle()
        assert world.selected == ("Blue",)
        for step in case.does:
            self.carry_out(world, step)
            world.settle()
        said = concluded(world.compose())

        ready = "True" if case.reason in ("Serving", "Baking") else "False"
        assert said["Ready"] == f"{ready}/{case.reason}"
        assert said.get("Stalled", "") == (f"True/{case.reason}" if case.ended else "")
        waits = not case.ended and ready == "False"
        assert said.get("Reconciling", "") == (f"True/{case.reason}" if waits else "")

    def carry_out(self, world: SwitchWorld, step: str) -> None:
        match step:
            case "flip":
                world.spec["routeTo"] = "Green"
            case "down":
                world.down = {"Green"}
            case "deadline":
                world.conditions = [EXCEEDED]
            case "fail":
                world.finish("Failed")
            case "change":
                world.spec["blueSpec"] = with_ports("v9", HTTP)
            case _:
                world.wait()

    @pytest.mark.parametrize("case", [one for one in REASONS if one.ended], ids=lambda c: c.reason)
    def test_it_says_the_same_however_many_pods_there_are(self, case):
        world = SwitchWorld(blueSpec=with_ports("v1", HTTP), **case.spec).settle()
        world.finish().settle()
        for step in case.does:
            self.carry_out(world, step)
            world.settle()

        said = set[str]()
        for number in (2, 5):
            world.replicas = {"Blue": number}
            desired = world.compose()
            said.add(blues.message(desired, "Stalled"))
        assert len(said) == 1

    def test_what_is_left_unchecked_does_not_hide_where_the_switch_stands(self):
        world = SwitchWorld(**CHECKED).settle()
        world.finish().settle()
        world.spec |= {"blueSpec": pods("v9"), "routeTo": "Green"}
        world.settle()

        assert world.ready(reason=True) == "Checking"

    def test_several_errors_of_a_spec_are_told_together(self):
        spec = {"routeTo": "Green", "greenSpec": None, "promotion": "WhenChecked"}
        desired = compose(blues.bluegreen(**spec), blues.observed(blues.service("Blue")))

        assert blues.says(desired, "Stalled") == "True/NoSpec"
        assert "there must be a greenSpec to route to; promotion is WhenChecked" in blues.message(
            desired, "Stalled"
        )

    def told(self, kind: str, *, over: bool) -> Desired:
        """Return what follows for a resource of a kind whose pods are not admitted."""

        def down(live: View) -> Any:
            return refused(exceeded(live) if over else live)

        match kind:
            case "BlueGreen":
                blue = down(blues.deployment("blue", up=0))
                return compose(blues.bluegreen(), blues.observed(blues.service("Blue"), blue))
            case "a switch":
                there = (blues.deployment("blue"), down(blues.deployment("green", up=0)))
                wanted = blues.bluegreen(routeTo="Green", promotion="WhenAvailable")
                return compose(wanted, blues.observed(blues.service("Blue"), *there))
            case "Memcached":
                there = (caches.service(), down(caches.deployment(3, up=2)))
                return memcached.compose(caches.memcached(), caches.observed(*there))
            case _:
                there = (config(), down(book_deployment(up=1)))
                return guestbook.compose(book(), blues.observed(*there))

    @pytest.mark.parametrize("kind", ["BlueGreen", "a switch", "Memcached", "Guestbook"])
    def test_every_kind_says_why_its_pods_are_missing(self, kind):
        waits, over = (self.told(kind, over=over) for over in (False, True))

        assert f"replicas are available: {REFUSED}" in blues.message(waits)
        assert f"replicas are available: {OVERDUE}" in blues.message(over)
        assert blues.says(waits, "Stalled") == ""
        # What changes with each pod would be another Event each time.
        said = blues.message(over, "Stalled").removeprefix("Blue: ").removeprefix("Green: ")
        assert said == OVERDUE + (STAYS if kind == "a switch" else "")

    @pytest.mark.parametrize("over", [False, True])
    def test_so_it_is_of_a_memcached(self, over):
        live = caches.deployment(3, up=2)
        there = (caches.service(), exceeded(live) if over else live)
        said = concluded(memcached.compose(caches.memcached(), caches.observed(*there)))

        reason = DEADLINE_EXCEEDED if over else "Unavailable"
        assert said == {
            "Ready": f"False/{reason}",
            "Stalled" if over else "Reconciling": f"True/{reason}",
        }

    @pytest.mark.parametrize(
        ("mounts", "over", "reason"),
        [
            ("pages", True, DEADLINE_EXCEEDED),
            ("pages", False, "Unavailable"),
            ("other", True, "Unavailable"),
        ],
    )
    def test_so_it_is_of_a_guestbook(self, mounts, over, reason):
        live = book_deployment(up=1, mounts=mounts)
        there = (config(), exceeded(live) if over else live)
        said = concluded(guestbook.compose(book(), blues.observed(*there)))

        kind = "Stalled" if reason == DEADLINE_EXCEEDED else "Reconciling"
        assert said == {"Ready": f"False/{reason}", kind: f"True/{reason}"}

    @pytest.mark.parametrize(
        "conditions", [[], ["odd"], [{"type": "Progressing", "reason": ["odd"]}]]
    )
    def test_a_deployment_that_does_not_say_so_is_not_over_its_deadline(self, conditions):
        assert why_stuck(Deployment({"status": {"conditions": conditions}})) == ""
        assert why_stuck(None) == ""


class TestMissingPort:
    @pytest.mark.parametrize("case", PORTS, ids=lambda case: case.reason)
    def test_it_is_a_name_that_no_container_has_for_the_protocol(self, case):
        assert missing_port([case.port], case.pod) == case.lacks

    def test_of_several_the_first_is_named_and_the_others_are_counted(self):
        lacks = missing_port([TO_HTTP, TO_DNS, {**TO_HTTP, "port": 81}], {"containers": []})

        assert lacks == f"{LACKS_HTTP} (and 2 more)"

    @pytest.mark.parametrize("odd", [None, "odd", 7, ["odd"], {"ports": "odd"}, {"ports": [7]}])
    def test_what_cannot_be_read_has_no_port(self, odd):
        assert missing_port([TO_HTTP, odd], {"containers": [odd]}) == LACKS_HTTP


GREEN_LACKS = f"Green: {LACKS_HTTP}"
WEB = {"name": "web", "containerPort": 8080}
TO_WEB = [{"name": "http", "port": 80, "targetPort": "web"}]


def renamed(**spec: Any) -> SwitchWorld:
    """A BlueGreen that serves Blue, whose Green has another name for the port."""
    both = {"blueSpec": with_ports("v1", HTTP), "greenSpec": with_ports("v2", WEB)}
    return SwitchWorld(**{**both, **NAMED, **spec}).settle()


class TestSwitch:
    @pytest.mark.parametrize("switch", ["Cut", "Overlap"])
    @pytest.mark.parametrize("promotion", ["WhenAvailable", "WhenChecked"])
    def test_no_traffic_goes_to_a_colour_without_the_port(self, promotion, switch):
        more = CHECKED if promotion == "WhenChecked" else {"promotion": promotion}
        world = renamed(switch=switch, **more)
        world.finish().settle()
        world.spec["routeTo"] = "Green"
        world.settle()

        assert world.selected == ("Blue",)
        assert not world.jobs  # a check could not ask it either
        assert world.why() == f"{GREEN_LACKS}{STAYS}"
        assert (world.ready(reason=True), world.why("Available")) == (
            PORT_MISSING,
            "Blue is available",
        )
        assert world.why("Stalled") == world.why()

        world.spec["greenSpec"] = with_ports("v3", HTTP)
        world.settle().finish().settle()
        while world.selected != ("Green",):
            world.wait()
        assert world.ready() == "True"

    def test_an_immediate_switch_is_made_and_it_is_said(self):
        world = renamed()
        before = world.why()
        world.spec["routeTo"] = "Green"
        world.settle()

        assert before == f"Blue is available; {GREEN_LACKS}"
        assert (world.selected, world.ready(reason=True)) == (("Green",), PORT_MISSING)
        assert world.why("Available") == world.why("Stalled") == GREEN_LACKS
        found = {one["type"]: one["status"] for one in world.status["conditions"]}
        assert found["Available"] == "False"

    def test_it_is_said_before_an_immediate_switch_is_promoted(self):
        world = renamed(hold=True)
        world.spec["routeTo"] = "Green"

        waits = "Green waits for `hedgerow promote demo -n ns`"
        assert world.settle().why() == f"{waits}{STAYS}; {GREEN_LACKS}"

    def test_a_port_that_goes_while_it_is_watched_is_routed_back_from(self):
        world = renamed(greenSpec=with_ports("v2", HTTP), **BAKE)
        world.spec["routeTo"] = "Green"
        world.settle()
        assert world.phase == "Baking"
        world.spec["greenSpec"] = with_ports("v2", WEB)
        world.settle().wait()

        assert (world.phase, world.selected) == ("RolledBack", ("Blue",))

    def test_there_is_no_way_back_to_a_colour_without_the_port(self):
        world = renamed(ports=[{"name": "http", "port": 80, "targetPort": 8080}], **BAKE)
        world.spec["routeTo"] = "Green"
        world.settle()
        world.spec["ports"] = TO_WEB
        world.down = {"Green"}
        world.settle().wait()

        assert world.selected == ("Green",)

    @pytest.mark.parametrize("guard", [{}, {"hold": True}, CHECKED])
    def test_ports_that_only_the_next_colour_has_come_with_the_switch(self, guard):
        world = renamed(**{**PATIENT, **guard})
        world.finish().settle()
        world.spec |= {"routeTo": "Green", "ports": TO_WEB}
        world.down = {"Green"}
        world.settle()
        assert world.services["demo"]["spec"]["ports"][0]["targetPort"] == "http"
        assert world.why("Available") == "Blue is available"

        world.down = set()
        world.settle().finish().settle()
        if guard.get("hold"):
            world.spec["promoted"] = world.status["switch"]["template"]
            world.settle()
        assert world.selected == ("Green",)
        assert world.services["demo"]["spec"]["ports"][0]["targetPort"] == "web"

    def test_ports_that_no_colour_has_are_applied_and_told(self):
        world = renamed(greenSpec=None, **PATIENT)
        world.spec["ports"] = TO_WEB
        world.settle()

        assert world.services["demo"]["spec"]["ports"][0]["targetPort"] == "web"
        assert world.ready(reason=True) == PORT_MISSING

    def test_of_a_standby_without_spec_nothing_is_said(self):
        assert renamed(greenSpec=None).why() == "Blue is available"


def held_by(manager: str, *ports: tuple[Object, tuple[str, ...]]) -> Object:
    """Return a managed fields entry of ports of a Service, by their keys and fields."""
    items = {
        f'k:{{"port":{port["port"]},"protocol":"{port["protocol"]}"}}': {
            ".": {},
            **{f"f:{name}": {} for name in names},
        }
        for port, names in ports
    }
    return {
        "manager": manager,
        "operation": "Apply",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:ports": items}},
    }


@dataclass(frozen=True)
class Others:
    """The ports of a live Service, who holds what of them, and what of Green is said then."""

    reason: str
    ports: tuple[Object, ...]
    entries: tuple[Object, ...]
    lacks: str
    declared: tuple[Object, ...] = field(default=({**TO_HTTP, "name": "http"},))


METRICS = {"port": 9090, "protocol": "TCP", "targetPort": "metrics"}
TARGET = ("port", "protocol", "targetPort")
OURS = held_by("hedgerow-bluegreen", (TO_HTTP, TARGET))
OTHERS = [
    Others("all ours", (TO_HTTP,), (OURS,), ""),
    Others(
        "a port that somebody else added",
        (TO_HTTP, METRICS),
        (OURS, held_by("kubectl-patch", (METRICS, TARGET))),
        "no container has a TCP port named metrics, to which port 9090 of the Service leads",
    ),
    Others(
        "a port of ours that is to go",
        (TO_HTTP, METRICS),
        (held_by("hedgerow-bluegreen", (TO_HTTP, TARGET), (METRICS, TARGET)),),
        "",
    ),
    Others(
        "a target that somebody else holds",
        ({**TO_HTTP, "targetPort": "web"},),
        (
            held_by("hedgerow-bluegreen", (TO_HTTP, ("port", "protocol"))),
            held_by("kubectl-edit", (TO_HTTP, ("targetPort",))),
        ),
        "no container has a TCP port named web, to which port 80 of the Service leads",
    ),
    Others(
        "a number that somebody else holds instead of the name",
        ({**TO_WEB[0], "protocol": "TCP", "targetPort": 8080},),
        (
            held_by("hedgerow-bluegreen", (TO_HTTP, ("port", "protocol"))),
            held_by("kubectl-edit", (TO_HTTP, ("targetPort",))),
        ),
        "",
        declared=tuple(TO_WEB),
    ),
    Others(
        "a name that is declared, and is not applied yet",
        (TO_HTTP,),
        (OURS,),
        "no container has a TCP port named web, to which port 80 of the Service leads",
        declared=tuple(TO_WEB),
    ),
    Others(
        "entries that cannot be read",
        (TO_HTTP, METRICS),
        (
            OURS,
            {
                "manager": "x",
                "fieldsV1": {
                    "f:spec": {
                        "f:ports": {
                            "k:{": {"f:targetPort": {}},
                            'k:{"port":[],"protocol":{}}': {"f:targetPort": {}},
                            "f:port": {},
                        }
                    }
                },
            },
        ),
        "",
    ),
]


class TestPortsOfOthers:
    @pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.reason)
    def test_what_the_service_will_have_is_asked_for(self, case):
        spec = with_ports("v1", HTTP)
        live = {
            "metadata": {"name": "demo", "managedFields": list(case.entries)},
            "spec": {"ports": list(case.ports), "selector": blues.selector("Blue")},
        }
        green = {
            **blues.deployment("green").raw,
            "spec": {"replicas": 1, "template": {"spec": spec}},
        }
        bg = blues.bluegreen(
            routeTo="Green", promotion="WhenAvailable", ports=list(case.declared), greenSpec=spec
        )
        there = (Service(live), blues.deployment("blue"), Deployment(green))
        desired = compose(bg, blues.observed(*there))

        if case.lacks:
            assert blues.message(desired) == f"Green: {case.lacks}{STAYS}"
        else:
            assert blues.declared_phase(desired) == "Green"

    def test_what_the_service_has_now_is_whether_it_serves(self):
        spec = with_ports("v1", HTTP)
        ports = [TO_HTTP, METRICS]
        live = {
            "metadata": {"name": "demo"},
            "spec": {"ports": ports, "selector": blues.selector("Blue")},
        }
        blue = {**blues.deployment("blue").raw, "spec": {"replicas": 1, "template": {"spec": spec}}}
        desired = compose(
            blues.bluegreen(blueSpec=spec, **NAMED), blues.observed(Service(live), Deployment(blue))
        )

        assert blues.says(desired, "Available") == f"False/{PORT_MISSING}"

    def test_the_preview_has_ports_too(self):
        world = SwitchWorld(preview=True).settle()
        world.services["demo-preview"]["spec"]["ports"].append(METRICS)
        world.managed = {"demo-preview": [held_by("kubectl-patch", (METRICS, TARGET))]}

        desired = world.compose()

        assert "Green: no container has a TCP port named metrics" in blues.message(desired)
        assert blues.says(desired) == SERVING

    def test_a_memcached_says_it_of_its_service(self):
        live = caches.service()
        ports = [{"port": 11211, "protocol": "TCP", "targetPort": 11211}, METRICS]
        entry = Service({**live.raw, "spec": {**live.raw["spec"], "ports": ports}})
        desired = memcached.compose(
            caches.memcached(), caches.observed(entry, caches.deployment(3))
        )

        assert concluded(desired) == {
            "Ready": f"False/{PORT_MISSING}",
            "Stalled": f"True/{PORT_MISSING}",
        }


def test_no_service_is_written_before_the_ports_can_come_with_the_switch():
    """A Keep holds no field back that others may hold, and removes none."""
    world = renamed(**PATIENT)
    world.spec |= {"routeTo": "Green", "ports": TO_WEB}
    world.down = {"Green"}
    world.settle()

    kept = [child for child in world.compose().children if isinstance(child, Keep)]
    assert [(child.kind, child.name) for child in kept] == [(Service, "demo")]
