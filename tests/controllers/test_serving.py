"""Serving: what Available, Ready and Stalled say of a workload, and ports that no pod has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers import blues, caches
from controllers.stories import (
    BAKE,
    GREEN,
    HOLD,
    STAYS,
    Act,
    all_comes,
    down,
    due,
    fails,
    passes,
    play,
    promote,
    spec,
    story,
    then,
)
from controllers.switching import CHECKED, SwitchWorld
from controllers.test_guestbook import book, config
from controllers.test_guestbook import deployment as book_deployment
from controllers.told import kept, message, observed, says
from hedgerow.contract import Desired
from hedgerow.controllers import guestbook, memcached
from hedgerow.controllers.bluegreen.controller import compose
from hedgerow.plan.conditions import conclude
from hedgerow.workloads import DEADLINE_EXCEEDED, PAUSED, PORT_MISSING, missing_port, why_stuck
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment, Service
from support.objects.ports import HTTP, LACKS_HTTP, PORTS, TO_DNS, TO_HTTP

Object = dict[str, Any]

EXCEEDED = {"type": "Progressing", "status": "False", "reason": DEADLINE_EXCEEDED}


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
    Told("a new template that its controller has not seen", blues.deployment("blue", generation=2),
         SERVING, LACKS),
    Told("scaled up, and the new pods are not there yet",
         Deployment({**blues.deployment("blue").raw, "spec": {"replicas": 3}}), SERVING, LACKS),
    Told("a rolling update that is over its deadline", exceeded(rolling("blue")), SERVING,
         f"False/{DEADLINE_EXCEEDED}", stalled=True),
    Told("too few pods", rolling("blue", serves=False), LACKS, LACKS),
    Told("too few pods, for longer than the deadline", exceeded(rolling("blue", serves=False)),
         LACKS, f"False/{DEADLINE_EXCEEDED}", stalled=True),
    Told("a change after the deadline, which its controller has not seen",
         exceeded(blues.deployment("blue", generation=2, up=0)), LACKS, LACKS),
    Told("a rolling update that somebody paused", paused(rolling("blue")), SERVING,
         f"False/{PAUSED}", stalled=True),
    Told("paused without a deadline, of which no condition tells",
         Deployment({**rolling("blue").raw, "spec": {"replicas": 3, "paused": True}}), SERVING,
         f"False/{PAUSED}", stalled=True),
    Told("paused, with too few pods of the newest template", paused(DOWN), LACKS, LACKS),
    Told("paused when it was rolled out", paused(blues.deployment("blue")), SERVING, SERVING),
    Told("rolled out after all", exceeded(blues.deployment("blue")), SERVING, SERVING),
]  # fmt: skip


class TestAvailable:
    @pytest.mark.parametrize("case", TOLD, ids=lambda case: case.reason)
    def test_it_is_whether_the_routed_colour_serves_now(self, case):
        desired = compose(blues.bluegreen(), observed(blues.service("Blue"), case.blue))
        said = concluded(desired)

        assert (said["Available"], said["Ready"]) == (case.available, case.ready)
        waits = not case.stalled and case.ready == LACKS
        assert ("Stalled" in said, "Reconciling" in said) == (case.stalled, waits)

    def test_a_refused_template_takes_nothing_from_what_serves(self):
        refused = frozenset({("Deployment", "demoblue-deployment")})
        there = (blues.service("Blue"), exceeded(rolling("blue")))
        desired = compose(blues.bluegreen(), observed(*there, refused=refused))

        assert says(desired, "Available") == SERVING
        assert says(desired) == LACKS  # the pass says Rejected or Forbidden
        assert says(desired, "Stalled") == ""

    def test_it_says_what_the_pods_lack(self):
        there = (blues.service("Blue"), rolling("blue", serves=False))
        pod = blues.pod("blue", "p", "ErrImagePull")
        desired = compose(blues.bluegreen(), observed(*there, pod))

        assert (
            message(desired, "Available")
            == "Blue: 1 of 3 replicas are up to date, pod p: ErrImagePull"
        )


@dataclass(frozen=True)
class Reason:
    """A reason of Ready, whether somebody has to act, and what is done one after the other."""

    reason: str
    ended: bool
    spec: Object
    does: tuple[Act, ...] = ()

    def world(self) -> SwitchWorld:
        spec = {"blueSpec": with_ports("v1", HTTP), **self.spec}
        return play(story(self.reason, spec, *map(then, self.does)))


def with_ports(image: str, *ports: Object) -> Object:
    return {"containers": [{"name": "c", "image": image, "ports": list(ports)}]}


def overdue(world: SwitchWorld) -> None:
    world.conditions = [EXCEEDED]


PATIENT = {"promotion": "WhenAvailable"}
NAMED = {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
GREEN_DOWN = down("Green")
CHANGE = spec(blueSpec=with_ports("v9", HTTP))
REASONS = [
    Reason("Serving", False, {}),
    Reason("WaitingForAvailability", False, PATIENT, (GREEN_DOWN, GREEN)),
    Reason(DEADLINE_EXCEEDED, True, PATIENT, (GREEN_DOWN, overdue, GREEN)),
    Reason(PORT_MISSING, True, PATIENT | NAMED, (GREEN,)),
    Reason("Checking", False, CHECKED, (GREEN,)),
    Reason("CheckFailed", True, CHECKED, (GREEN, fails)),
    Reason("TemplateNotChecked", True, CHECKED, (CHANGE,)),
    Reason("Held", False, HOLD, (GREEN,)),
    Reason("Overlapping", False, {"switch": "Overlap"}, (GREEN,)),
    Reason("Baking", False, BAKE, (GREEN,)),
    Reason("RolledBack", True, BAKE, (GREEN, GREEN_DOWN, due)),
    Reason("Unavailable", False, {}, (GREEN, GREEN_DOWN)),
]


class TestStalled:
    @pytest.mark.parametrize("case", REASONS, ids=lambda case: case.reason)
    def test_it_is_where_somebody_has_to_act(self, case):
        said = concluded(case.world().compose())

        ready = "True" if case.reason in ("Serving", "Baking") else "False"
        assert said["Ready"] == f"{ready}/{case.reason}"
        assert said.get("Stalled", "") == (f"True/{case.reason}" if case.ended else "")
        waits = not case.ended and ready == "False"
        assert said.get("Reconciling", "") == (f"True/{case.reason}" if waits else "")

    @pytest.mark.parametrize("case", [one for one in REASONS if one.ended], ids=lambda c: c.reason)
    def test_it_says_the_same_however_many_pods_there_are(self, case):
        world, said = case.world(), set[str]()
        for number in (2, 5):
            world.replicas = {"Blue": number}
            said.add(message(world.compose(), "Stalled"))

        assert len(said) == 1

    def test_several_errors_of_a_spec_are_told_together(self):
        spec = {"routeTo": "Green", "greenSpec": None, "promotion": "WhenChecked"}
        desired = compose(blues.bluegreen(**spec), observed(blues.service("Blue")))

        assert says(desired, "Stalled") == "True/NoSpec"
        assert "there must be a greenSpec to route to; promotion is WhenChecked" in message(
            desired, "Stalled"
        )

    def told(self, kind: str, *, over: bool) -> Desired:
        """Return what follows for a resource of a kind whose pods are not admitted."""

        def down(live: View) -> Any:
            return refused(exceeded(live) if over else live)

        match kind:
            case "BlueGreen":
                blue = down(blues.deployment("blue", up=0))
                return compose(blues.bluegreen(), observed(blues.service("Blue"), blue))
            case "a switch":
                there = (blues.deployment("blue"), down(blues.deployment("green", up=0)))
                wanted = blues.bluegreen(routeTo="Green", promotion="WhenAvailable")
                return compose(wanted, observed(blues.service("Blue"), *there))
            case "Memcached":
                there = (caches.service(), down(caches.deployment(3, up=2)))
                return memcached.compose(caches.memcached(), observed(*there))
            case _:
                there = (config(), down(book_deployment(up=1)))
                return guestbook.compose(book(), observed(*there))

    @pytest.mark.parametrize("kind", ["BlueGreen", "a switch", "Memcached", "Guestbook"])
    def test_every_kind_says_why_its_pods_are_missing(self, kind):
        waits, over = (self.told(kind, over=over) for over in (False, True))

        assert f"replicas are available: {REFUSED}" in message(waits)
        assert f"replicas are available: {OVERDUE}" in message(over)
        assert says(waits, "Stalled") == ""
        # What changes with each pod would be another Event each time.
        said = message(over, "Stalled").removeprefix("Blue: ").removeprefix("Green: ")
        assert said == OVERDUE + (STAYS if kind == "a switch" else "")

    @pytest.mark.parametrize("over", [False, True])
    def test_so_it_is_of_a_memcached(self, over):
        live = caches.deployment(3, up=2)
        there = (caches.service(), exceeded(live) if over else live)
        said = concluded(memcached.compose(caches.memcached(), observed(*there)))

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
        said = concluded(guestbook.compose(book(), observed(*there)))

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
WITH_HTTP, WITH_WEB = with_ports("v2", HTTP), with_ports("v2", WEB)
RENAMED = {"blueSpec": with_ports("v1", HTTP), "greenSpec": WITH_WEB, **NAMED}
"""Green has another name for the port."""
BY_NUMBER = [{"name": "http", "port": 80, "targetPort": 8080}]
SWITCHES = (
    *(
        story(f"no traffic goes to a colour without the port: {switch}, {more['promotion']}",
            RENAMED | {"switch": switch, **more},
            # A check could not ask it either.
            then(GREEN, on="Blue", jobs=[], ready=f"False/{PORT_MISSING}",
                 why=f"{GREEN_LACKS}{STAYS}", why_stalled=f"{GREEN_LACKS}{STAYS}",
                 available="Blue is available"),
            then(spec(greenSpec=with_ports("v3", HTTP)), all_comes, on="Green",
                 ready="True/Serving"))
        for switch in ("Cut", "Overlap")
        for more in (PATIENT, CHECKED)
    ),
    story("an immediate switch is made and it is said", RENAMED,
        then(why=f"Blue is available; {GREEN_LACKS}"),
        then(GREEN, on="Green", ready=f"False/{PORT_MISSING}", serves=f"False/{PORT_MISSING}",
             available=GREEN_LACKS, why_stalled=GREEN_LACKS)),
    story("it is said before an immediate switch is promoted", RENAMED | HOLD,
        then(GREEN,
             why=f"Green waits for `hedgerow promote demo -n ns`{STAYS}; {GREEN_LACKS}")),
    story("a port that goes while it is watched is routed back from",
        RENAMED | BAKE | {"greenSpec": WITH_HTTP},
        then(GREEN, phase="Baking"),
        then(spec(greenSpec=WITH_WEB)),
        then(due, phase="RolledBack", on="Blue")),
    story("there is no way back to a colour without the port",
        RENAMED | BAKE | {"ports": BY_NUMBER},
        then(GREEN),
        then(spec(ports=TO_WEB), down("Green")),
        then(due, on="Green")),
    *(
        story("ports that only the next colour has come with the switch", RENAMED | PATIENT | guard,
            then(spec(routeTo="Green", ports=TO_WEB), down("Green"), port="http",
                 available="Blue is available"),
            then(down()),
            then(passes),
            then(promote, on="Green", port="web"))
        for guard in ({}, HOLD, CHECKED)
    ),
    story("ports that no colour has are applied and told", RENAMED | PATIENT | {"greenSpec": None},
        then(spec(ports=TO_WEB), port="web", ready=f"False/{PORT_MISSING}")),
    story("of a standby without spec nothing is said", RENAMED | {"greenSpec": None},
        then(why="Blue is available")),
)  # fmt: skip


class TestSwitch:
    @pytest.mark.parametrize("one", SWITCHES, ids=str)
    def test_each_step_shows(self, one):
        play(one)

    def test_no_service_is_written_before_the_ports_can_come_with_the_switch(self):
        """A Keep holds no field back that others may hold, and removes none."""
        waits = then(spec(routeTo="Green", ports=TO_WEB), down("Green"))
        world = play(story("", RENAMED | PATIENT, waits))

        assert kept(world.compose()) == ["demo"]


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
ODD_KEYS = ("k:{", 'k:{"port":[],"protocol":{}}')
ODD_PORTS = {**{key: {"f:targetPort": {}} for key in ODD_KEYS}, "f:port": {}}
ODD = {"manager": "x", "fieldsV1": {"f:spec": {"f:ports": ODD_PORTS}}}
OTHERS = [
    Others("all ours", (TO_HTTP,), (OURS,), ""),
    Others("a port that somebody else added", (TO_HTTP, METRICS),
           (OURS, held_by("kubectl-patch", (METRICS, TARGET))),
           "no container has a TCP port named metrics, to which port 9090 of the Service leads"),
    Others("a port of ours that is to go", (TO_HTTP, METRICS),
           (held_by("hedgerow-bluegreen", (TO_HTTP, TARGET), (METRICS, TARGET)),), ""),
    Others("a target that somebody else holds", ({**TO_HTTP, "targetPort": "web"},),
           (held_by("hedgerow-bluegreen", (TO_HTTP, ("port", "protocol"))),
            held_by("kubectl-edit", (TO_HTTP, ("targetPort",)))),
           "no container has a TCP port named web, to which port 80 of the Service leads"),
    Others("a number that somebody else holds instead of the name",
           ({**TO_WEB[0], "protocol": "TCP", "targetPort": 8080},),
           (held_by("hedgerow-bluegreen", (TO_HTTP, ("port", "protocol"))),
            held_by("kubectl-edit", (TO_HTTP, ("targetPort",)))),
           "", declared=tuple(TO_WEB)),
    Others("a name that is declared, and is not applied yet", (TO_HTTP,), (OURS,),
           "no container has a TCP port named web, to which port 80 of the Service leads",
           declared=tuple(TO_WEB)),
    Others("entries that cannot be read", (TO_HTTP, METRICS), (OURS, ODD), ""),
]  # fmt: skip


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
        desired = compose(bg, observed(*there))

        if case.lacks:
            assert message(desired) == f"Green: {case.lacks}{STAYS}"
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
            blues.bluegreen(blueSpec=spec, **NAMED), observed(Service(live), Deployment(blue))
        )

        assert says(desired, "Available") == f"False/{PORT_MISSING}"

    def test_the_preview_has_ports_too(self):
        world = SwitchWorld(preview=True).settle()
        world.services["demo-preview"]["spec"]["ports"].append(METRICS)
        world.managed = {"demo-preview": [held_by("kubectl-patch", (METRICS, TARGET))]}

        desired = world.compose()

        assert "Green: no container has a TCP port named metrics" in message(desired)
        assert says(desired) == SERVING

    def test_a_memcached_says_it_of_its_service(self):
        live = caches.service()
        ports = [{"port": 11211, "protocol": "TCP", "targetPort": 11211}, METRICS]
        entry = Service({**live.raw, "spec": {**live.raw["spec"], "ports": ports}})
        desired = memcached.compose(caches.memcached(), observed(entry, caches.deployment(3)))

        assert concluded(desired) == {
            "Ready": f"False/{PORT_MISSING}",
            "Stalled": f"True/{PORT_MISSING}",
        }
