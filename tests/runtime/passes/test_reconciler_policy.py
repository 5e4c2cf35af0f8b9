"""What a user yields stays with others, what a user claims is taken back, and nothing besides."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest

from faults.checked import BLUE, DEMO, ROUTE
from faults.scenario import Act, People, give_back, take
from hedgerow.kube import errors
from hedgerow.plan.yield_and_claim import CLAIM, YIELD, FieldPolicy
from hedgerow.runtime.namespaces import LOOK_AGAIN
from hedgerow_testing.memory.cluster import Sent
from runtime import scenes
from runtime.bluegreens import (
    APPLY_BLUE,
    APPLY_STATUS,
    CHILD,
    CREATED,
    claims,
    declare,
    edit,
    in_pods,
    look_again,
    looked,
    play_row,
    play_to_rest,
    row,
    says,
    step,
    take_image,
    wait,
    yields,
)
from runtime.scenes import DISK, IMAGE, MOST_REPEATS, fight
from runtime.stepwise import WorldPeople, in_world
from runtime.world import World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

DECLARED, THEIRS = "example/echo:1", "theirs:9"
TAKEN = [(CHILD, IMAGE, "helm")]
GRACE = ".spec.template.spec.terminationGracePeriodSeconds"
GRACEFUL = declare(blueSpec=pods("blue", terminationGracePeriodSeconds=7))
TOOK = step(take_image(), contested=TAKEN)
OF_IMAGE = f"Deployment/*: {IMAGE}"
AGREED = {"containers": [{"name": "blue", "image": DECLARED}]}


def graceful(seconds: int | None, by: str = "kubectl-edit") -> Act:
    return edit(BLUE, in_pods(terminationGracePeriodSeconds=seconds), by)


def agree(people: People) -> None:
    """Have the image applied by another, as it is."""
    people.apply({**BLUE, **in_pods(**AGREED)}, "helm")


def limited(amount: str) -> Object:
    limits = {"limits": {"cpu": amount}}
    return {"containers": [{"name": "blue", "image": "a", "resources": limits}]}


def allowing(allowed: bool | None) -> Act:
    """Have the namespace allow claims, or not; None: it cannot be read."""

    def act(world: World) -> None:
        world.claiming["default"], world.claims_again = allowed, LOOK_AGAIN
        world.life.look()

    return in_world(act)


YIELDS = (
    row(
        "what is yielded is contested no more and left",
        CREATED,
        TOOK,
        step(yields(OF_IMAGE), contested=[], Contested="", blue=THEIRS),
        # Without the word the holder that stays is reported.
        step(yields(None), contested=TAKEN),
    ),
    row(
        "what another holds with our value is given up",
        CREATED,
        step(agree, holders="hedgerow-bluegreen helm"),
        step(yields(f"*/*: {IMAGE}"), holders="helm", blue=DECLARED),
    ),
    row(
        "what nobody else holds stays declared",
        CREATED,
        step(yields(OF_IMAGE), sent=[], holders="hedgerow-bluegreen"),
    ),
    row(
        "what its holder lets go is declared again",
        step(GRACEFUL, yields(f"Deployment/*: {GRACE}")),
        step(take(BLUE, in_pods(terminationGracePeriodSeconds=9), "helm"), grace=9),
        step(give_back(BLUE, "helm"), grace=7),
    ),
)
TAKEN_BACK = step(claims(OF_IMAGE), blue=DECLARED, contested=[], forced=1)
CLAIMS = (
    row(
        "what is claimed is taken back with an Event",
        CREATED,
        TOOK,
        step(
            claims(f"{CHILD}: {IMAGE}"),
            blue=DECLARED,
            contested=[],
            holders="hedgerow-bluegreen",
            events="FieldClaimed FieldConflict",
            Ready="False/Unavailable",
        ),
    ),
    row(
        "only what is claimed is forced",
        step(GRACEFUL, grace=7),
        step(take_image(), graceful(9)),
        step(
            claims(OF_IMAGE),
            blue=DECLARED,
            grace=9,
            contested=[(CHILD, GRACE, "kubectl-edit")],
            forced=1,
        ),
    ),
    row(
        "a forced write that meets news is refused and decided anew",
        CREATED,
        TOOK,
        step(claims(OF_IMAGE), graceful(3), lag="BlueGreen"),
        step(blue=DECLARED, grace=3),
    ),
    row("without a conflict nothing is forced", CREATED, step(claims("*/*: **"), sent=[])),
    row(
        "what is claimed from another or later is told anew",
        CREATED,
        step(claims(OF_IMAGE), take_image(), events="FieldClaimed"),
        step(take_image(by="kubectl"), events="FieldClaimed FieldClaimed"),
        step(wait(601), take_image(), events=" ".join(["FieldClaimed"] * 3)),
    ),
    row(
        "a field that keeps vanishing is put back while it is claimed",
        step(
            declare(blueSpec=pods("blue", nodeSelector=DISK)),
            claims("Deployment/*: .spec.template.spec.nodeSelector"),
        ),
        *[step(edit(BLUE, in_pods(nodeSelector=None)), nodes=DISK, contested=[])] * 3,
        step(events="FieldRestored"),
    ),
)
NO_TERM = "Deployment/*: spec.template.spec.containers[*].imgae"
MISREAD = (
    *(
        row(
            f"the annotation {text} is told and nothing that is there is touched",
            CREATED,
            step(
                annotate(text),
                declare(blueSpec=pods("blue", "mine:2")),
                Stalled="True/InvalidAnnotation",
                blue=DECLARED,
                events="InvalidAnnotation",
            ),
            step(annotate(None), blue="mine:2", Stalled=""),
        )
        for text, annotate in {"nonsense": yields, "Deployment/*:": claims}.items()
    ),
    row(
        "a term that means nothing is told by Ready and nothing else is written",
        CREATED,
        step(yields(NO_TERM), sent=[APPLY_STATUS], Stalled=""),
        says("Ready", f"; no field matches {YIELD}: {NO_TERM}"),
        step(yields(None), sent=[APPLY_STATUS]),
        looked(lambda people: "no field matches" not in str(people.get(DEMO))),
    ),
    row(
        "it is told while the field that was meant is contested",
        CREATED,
        TOOK,
        step(claims(f"Deployment/nobody: {IMAGE}"), Ready="False/FieldConflict"),
        says("Ready", f"matches {CLAIM}: Deployment/nobody: {IMAGE}"),
    ),
    row(
        "what a co-owner spells otherwise is no conflict",
        step(declare(blueSpec=limited("500m"))),
        step(take(BLUE, in_pods(**limited("1")), "helm"), Contested="True/FieldConflict"),
        step(declare(blueSpec=limited("1000m")), contested=[], Contested=""),
    ),
)
REFUSED = (
    row(
        "where a namespace allows no claims nothing is taken until it does, and the reason is told",
        CREATED,
        step(
            allowing(False),
            take_image(),
            claims(OF_IMAGE),
            blue=THEIRS,
            contested=TAKEN,
            Stalled="True/ClaimRefused",
            events="ClaimRefused FieldConflict",
        ),
        says("Stalled", "kubectl label namespace default hedgerow.dev/allow-claims=true"),
        step(allowing(True), blue=DECLARED, Stalled=""),
    ),
    row(
        "nor does it stay allowed for longer than a minute",
        CREATED,
        step(allowing(True), claims(OF_IMAGE)),
        step(allowing(False), wait(61)),
        step(take_image(), blue=THEIRS),
    ),
    row(
        "who claims nothing is not looked at for that",
        CREATED,
        step(allowing(True), yields(OF_IMAGE), waits=False),
    ),
    row(
        "while it cannot be read nothing is done for who claims",
        step(allowing(None), declare(), claims(OF_IMAGE), route=None),
        step(allowing(True), route="Blue"),
    ),
    row(
        "who claims nothing need not wait for it",
        step(allowing(None), declare(), yields(OF_IMAGE), route="Blue"),
    ),
)


@pytest.mark.parametrize("row", [*YIELDS, *CLAIMS, *MISREAD, *REFUSED], ids=str)
async def test_row(row):
    await play_to_rest(row)


async def test_a_fight_is_given_up():
    world = await play_row(row("a fight", CREATED, step(claims(OF_IMAGE))))
    await fight(world, lambda: scenes.take_image(world))

    assert 2 < sum(sent.force for sent in world.cluster.writes) <= MOST_REPEATS + 2
    assert world.events().count("FieldClaimed") == 1
    assert THEIRS in str(world.the("Deployment", "demoblue-deployment"))
    assert world.condition("Ready") == "False/NotSettling"


async def test_a_forced_write_is_for_the_version_that_was_looked_at():
    world = await play_row(row("forced", CREATED, TOOK, TAKEN_BACK))

    [forced] = [sent for sent in world.cluster.writes if sent.force]
    assert forced.body["metadata"]["resourceVersion"]


async def test_what_is_compiled_of_an_annotation_goes_with_the_pass():
    """Of the longest one that is 30 KB for each child, which no budget counts."""
    policy = "Deployment/*: spec.replicas, spec.template.**; Service/*: spec.*"
    touched = edit(ROUTE, {"metadata": {"annotations": {"of": "somebody"}}})
    await play_row(row("compiled", CREATED, step(yields(policy)), step(touched)))

    gc.collect()
    policies = [one for one in gc.get_objects() if isinstance(one, FieldPolicy)]
    assert [one for one in policies if one.yields] == []


# --- admission ------------------------------------------------------------------------------------


def rewriting(to: str, **fields: Any) -> Act:
    """Let admission change the image of every Deployment that we apply, and fields of its pods."""

    def act(world: World) -> None:
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

    return in_world(act)


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
FALSY = {"terminationGracePeriodSeconds": 0, "hostNetwork": False}
TOLD = "True/ChangedOnTheWay"


def unsaid(spec: Object, container: Object) -> Any:
    whole = pods("blue", **spec)
    whole["containers"][0] |= container
    first = step(declare(blueSpec=whole, greenSpec=None), events="", RewrittenByAdmission="")
    return row(f"nothing is said of {spec or container}", first, step(look_again, sent=[]))


REWRITTEN = (
    row(
        "what admission rewrites is reported once and not fought",
        step(
            rewriting("mirror/echo:1"),
            declare(),
            RewrittenByAdmission=TOLD,
            events="RewrittenByAdmission",
            contested=[],
        ),
        says("RewrittenByAdmission", f"{CHILD}: {IMAGE} was changed to mirror/echo:1"),
        # A tag that moved meanwhile: an apply rolls all pods.
        step(rewriting("mirror/echo:2"), restarted=True, sent=[]),
        step(look_again, sent=[]),
    ),
    row(
        "what is zero or false is a value that admission may change",
        step(
            rewriting(DECLARED, terminationGracePeriodSeconds=30, hostNetwork=True),
            declare(blueSpec=pods("blue", **FALSY), greenSpec=None),
        ),
        says("RewrittenByAdmission", GRACE, ".spec.template.spec.hostNetwork"),
    ),
    row(
        "it goes with its cause",
        step(rewriting("mirror/echo:1"), declare(greenSpec=None), RewrittenByAdmission=TOLD),
        step(
            declare(blueSpec=pods("blue", "mirror/echo:1"), greenSpec=None), RewrittenByAdmission=""
        ),
    ),
    *(unsaid(spec, {}) for spec in UNSAID),
    *(unsaid({}, container) for container in OF_CONTAINERS),
)


@pytest.mark.parametrize("row", REWRITTEN, ids=str)
async def test_of_admission(row):
    await play_row(row)


async def test_what_is_left_of_a_refused_child_that_admission_rewrites_is_applied_once():
    world, sent = World(), list[bool]()
    rewrite = rewriting("mirror/echo:1")
    rewrite(WorldPeople(world))
    world.apply(greenSpec=None)
    await world.settle()

    async def hook(asked: Sent) -> None:
        if str(asked) == APPLY_BLUE:
            sent.append("bad" in str(asked.body))
            if sent[-1]:
                cause = errors.Cause("spec.template.spec.priorityClassName", "", "no")
                raise errors.Invalid("no", causes=[cause], code=422)

    world.cluster.before = hook
    pod = pods("blue", "example/echo:2", priorityClassName="bad")
    world.apply(greenSpec=None, blueSpec=pod)
    await fight(world, minutes=10)

    assert sent.count(False) == 1
    assert sent.count(True) > 2
    told = [child["object"] for child in world.status()["admitted"]]
    assert told == ["Deployment/demoblue-deployment"]
