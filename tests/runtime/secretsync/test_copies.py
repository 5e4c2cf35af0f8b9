"""Copies of Secrets, step by step: targets, keys of others, mistakes, removal, what is told."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from faults.built_in import EVENTS
from faults.scenario import People, Step
from hedgerow import Secret
from hedgerow.controllers.secretsync.sources import DOMAIN, SOURCE, TARGET_NAME, TARGET_TYPE
from runtime.secretsync.syncing import HOME, MANAGER, TYPE, Syncing, coded, secret
from runtime.stepwise import WorldPeople, play
from runtime.world import World
from support.objects.parts import Part

pytestmark = pytest.mark.anyio

A, B = "team-a", "team-b"
MINE = "tenant.example.com/mine"
Act = Callable[[People], object]
Data = dict[str, str]


# --- what people do -------------------------------------------------------------------------------


def source(name: str, data: Data, target: str = "", *, type_: str = "", **more: Any) -> Act:
    """Have a source made or changed, as `kubectl apply --server-side` does."""
    notes = {TARGET_NAME: target, TARGET_TYPE: type_, **more.pop("annotations", {})}
    body = secret(name, HOME, {key: value for key, value in notes.items() if value})
    body |= {"type": TYPE, "data": {key: coded(value) for key, value in data.items()}, **more}
    return lambda people: people.apply(body, "kubectl", force=True)


def put(data: Data, where: str = A, by: str = "somebody") -> Act:
    """Have keys applied to the Secret `app` somewhere, by force."""
    body = {**secret("app", where), "data": {key: coded(value) for key, value in data.items()}}
    return lambda people: people.apply(body, by, force=True)


def delete(name: str, where: str = HOME) -> Act:
    return lambda people: people.delete(secret(name, where))


def finalize(where: str, *names: str) -> Act:
    """Have the Secret `app` kept by finalizers, or by none."""
    patch = {"metadata": {"finalizers": list(names) or None}}
    return lambda people: people.edit(secret("app", where), patch, "tenant")


def forge(people: People) -> None:
    """Have written on a copy what our manager writes, by its name, and a finalizer with it."""
    copy = people.get(secret("app", A))
    assert copy
    del copy["metadata"]["managedFields"]
    copy["metadata"]["finalizers"] = [MINE]
    people.apply(copy, MANAGER, force=True)


def annotate_copy(text: str) -> Act:
    """Have the annotation edited that names the source of a copy."""
    patch = {"metadata": {"annotations": {SOURCE: text}}}
    return lambda people: people.edit(secret("app", A), patch, "somebody")


# --- what is to be seen ---------------------------------------------------------------------------


def found(what: str, people: People) -> object:
    """Return the data of `app in team-a`, its `type of …`, what is `told …`, or all `events`."""
    if what == "events":
        events = people.every(EVENTS)
        return sorted(f"{one['regarding']['name']} {one['reason']}" for one in events)
    if what.startswith("told "):
        return _told(what.removeprefix("told "), people)
    field, _, place = what.rpartition(" of ")
    name, _, where = place.partition(" in ")
    live = people.get(secret(name, where))
    match field:
        case "":
            data = (live or {}).get("data", {})
            return live and {key: b64decode(value).decode() for key, value in data.items()}
        case "source":
            return (live or {})["metadata"].get("annotations", {}).get(SOURCE)
        case "labels":
            return (live or {})["metadata"].get("labels")
        case _:
            return (live or {}).get(field)


def _told(name: str, people: People) -> Data:
    events = sorted(people.every(EVENTS), key=lambda one: one["eventTime"])
    return {one["reason"]: one["note"] for one in events if one["regarding"]["name"] == name}


@dataclass(frozen=True)
class Seen:
    """Looks for what is wanted of each name that `found` takes."""

    wanted: dict[str, object]

    def __call__(self, people: People) -> bool:
        for what, wanted in self.wanted.items():
            there = found(what, people)
            assert wanted == there, f"{what}: {there}"
        return True


def step(*acts: Act, restarted: bool = False, **wanted: object) -> Step:
    """Return a step; `a` and `b` are what the Secret `app` has in both namespaces."""
    both = {"a": f"app in {A}", "b": f"app in {B}"}
    seen = Seen({both.get(name, name.replace("_", " ")): each for name, each in wanted.items()})

    def act(people: People) -> None:
        for one in acts:
            one(people)

    return Step("step", act, seen, restarted=restarted)


def looked(wanted: dict[str, object]) -> Step:
    """Return a look alone, at names that are no words of Python."""
    return Step("look", lambda people: None, Seen(wanted))


# --- the rows -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Some steps, and how many copies are deleted in all of them."""

    name: str
    steps: tuple[Step, ...]
    deleted: int = 0


def row(name: str, *steps: Step, deleted: int = 0) -> Row:
    return Row(name, steps, deleted)


ONE, TWO = {"password": "one"}, {"password": "two"}
BOTH_KEYS = {"password": "one", "user": "two"}
APP = step(source("app", ONE), a=ONE, b=ONE)
FORMER = step(source("old", ONE, "app"), a=ONE)
TAKEN = (
    "Secret/app is the copy of Secret/old, so this Secret is not copied: a target has one source,"
    f" the oldest. Choose another {TARGET_NAME}"
)

OURS = {"hedgerow.dev/controller": "secretsync", "source.k8s.ziwon.dev/app": HOME}
USER = {"user": "two"}
COPIES = (
    row(
        "each namespace gets one but the source's, the operator's and the skipped ones",
        APP,
        looked(
            {
                "app in hedgerow-system": None,
                f"type of app in {A}": TYPE,
                f"source of app in {A}": f"{HOME}/app",
                f"labels of app in {A}": OURS,
                "app in kube-system": None,
            }
        ),
    ),
    row(
        "a change reaches all copies, and a key that goes is pruned",
        step(source("app", BOTH_KEYS), a=BOTH_KEYS),
        step(source("app", TWO), a=TWO, b=TWO),
    ),
    row("a copy that is deleted comes back", APP, step(delete("app", A), a=ONE)),
    row(
        "a source that moves to another target leaves the first",
        step(source("mail", ONE, "app"), a=ONE),
        step(source("mail", ONE, "mail"), a=None),
        looked({f"mail in {A}": ONE}),
        deleted=2,
    ),
)
OF_OTHERS = (
    row(
        "keys of others live on beside ours",
        step(source("app", BOTH_KEYS)),
        step(put({"theirs": "kept"}), source("app", TWO), a=TWO | {"theirs": "kept"}, b=TWO),
    ),
    row(
        "a key that somebody holds is contested and told on the source",
        APP,
        step(
            put({"password": "mine"}),
            source("app", {**TWO, "user": "three"}),
            a={"password": "mine", "user": "three"},
            b={**TWO, "user": "three"},
            events=["app FieldConflict"],
        ),
        *(
            looked({"told app": {"FieldConflict": Part(text)}})
            for text in (
                "in team-a: Secret/app: .data.password",
                "held by somebody (Apply)",
                "kubectl annotate namespaces team-a",
            )
        ),
        step(put({}), a={**TWO, "user": "three"}),
    ),
    row(
        "a Secret that is not ours is never written",
        step(put({"password": "theirs"}), source("app", ONE), a={"password": "theirs"}, b=ONE),
        looked({"told app": {"NameTaken": Part("in team-a: Secret/app exists")}}),
        step(delete("app", A), a=ONE),
    ),
    *(
        row(
            f"nothing in the annotation of a copy stops us: {text[:20]!r}",
            APP,
            step(annotate_copy(text)),
            step(source("app", TWO), restarted=True, a=TWO),
        )
        for text in ("", "7", "elsewhere/app", "x" * 100_000)
    ),
)
TARGETS = (
    *(
        row(
            f"of two sources of a target the older one has it, {restarted=}",
            FORMER,
            step(source("new", USER, "app"), restarted=restarted, a=ONE, b=ONE),
            looked({"told new": {"TargetTaken": TAKEN}, "told old": {}}),
        )
        for restarted in (False, True)
    ),
    *(
        row(
            f"of two of one second the name decides, {first} first",
            step(
                *(source(name, {"from": name}, "app") for name in (first, second)),
                a={"from": "a"},
                b={"from": "a"},
            ),
        )
        for first, second in (("a", "b"), ("b", "a"))
    ),
    row(
        "once the older one goes, the other one has its copies",
        step(source("old", {**ONE, "shared": "old"}, "app")),
        step(source("new", {"user": "two", "shared": "new"}, "app")),
        step(delete("old"), a={"user": "two", "shared": "new"}),
        looked(
            {
                f"source of app in {A}": f"{HOME}/new",
                f"labels of app in {A}": {
                    "hedgerow.dev/controller": "secretsync",
                    "source.k8s.ziwon.dev/new": HOME,
                },
            }
        ),
    ),
    *(
        row(
            f"one that is mistaken about {what} keeps its target",
            FORMER,
            step(source("old", {"password": "three"}, target, type_=type_)),
            step(source("new", USER, "app"), a=ONE),
            looked({"told old": {"InvalidAnnotation": Part("its copies stay as they are")}}),
            looked({"told new": {"TargetTaken": Part("is the copy of Secret/old")}}),
        )
        for what, target, type_ in (
            ("its type", "app", Secret.CREDENTIALS[0]),
            ("its name", "No Name", ""),
        )
    ),
)
MISTAKES = (
    row(
        "a name that cannot be read leaves the copies as they are",
        step(source("db", ONE, "app"), a=ONE),
        step(source("db", TWO, "No Name"), a=ONE, events=["db InvalidAnnotation"]),
        looked({"told db": {"InvalidAnnotation": Part("no name of a Secret")}}),
        step(delete("db"), a=None),
        deleted=2,
    ),
    row(
        "an annotation that means nothing is told and changes nothing",
        step(
            source("app", ONE, annotations={f"{DOMAIN}/target-nam": "x"}),
            a=ONE,
            events=["app UnknownAnnotation"],
        ),
        looked(
            {
                "told app": {
                    "UnknownAnnotation": f"{DOMAIN}/target-nam means nothing: there are"
                    f" {TARGET_NAME} and {TARGET_TYPE}"
                }
            }
        ),
    ),
    *(
        row(
            f"a type that gives somebody's rights is not copied: {type_}",
            step(source("app", ONE, type_=type_), a=None),
            looked(
                {"told app": {"InvalidAnnotation": Part(f"type {type_} gives somebody's rights")}}
            ),
        )
        for type_ in Secret.CREDENTIALS
    ),
    row(
        "a mistake is told anew once the source has changed, and by no restart",
        step(source("app", ONE, "No Name"), events=["app InvalidAnnotation"]),
        step(restarted=True, events=["app InvalidAnnotation"]),
        step(source("app", ONE), a=ONE),
        step(source("app", ONE, "No Name"), events=["app InvalidAnnotation"] * 2),
    ),
    row(
        "what is mended and wrong again is told once more for all namespaces",
        FORMER,
        step(source("young", USER, "app"), events=["young TargetTaken"]),
        step(restarted=True),
        step(source("young", USER, "other")),
        step(restarted=True),
        step(source("young", USER, "app")),
        step(restarted=True, events=["young TargetTaken"] * 2),
        deleted=2,
    ),
)
REMOVAL = (
    *(
        row(
            f"nothing that a tenant does to a copy holds anything up: {what}, {restarted=}",
            APP,
            step(*acts, source("more", USER), delete("app"), restarted=restarted, a=ONE, b=None),
            looked({f"app in {HOME}": None, f"more in {A}": USER, f"more in {B}": USER}),
            deleted=deleted,
        )
        for restarted in (False, True)
        for what, acts, deleted in (
            ("a finalizer", (finalize(A, MINE),), 2),
            ("one, and it was deleted", (finalize(A, MINE), delete("app", A)), 1),
            ("one in the name of our manager", (forge,), 2),
        )
    ),
    row(
        "nor does another copy that cannot be made",
        step(put({"password": "theirs"}), source("app", ONE), source("more", USER)),
        step(delete("more"), a={"password": "theirs"}, b=ONE),
        looked({f"more in {A}": None, f"more in {B}": None}),
        step(delete("app", A), a=ONE),
        deleted=2,
    ),
    row("the copies follow their source", APP, step(delete("app"), a=None, b=None), deleted=2),
    row(
        "of one that others keep in deletion the copies go too",
        APP,
        step(finalize(HOME, "a.example/x"), delete("app"), a=None),
        looked({f"app in {HOME}": ONE}),
        deleted=2,
    ),
    row(
        "a copy with keys of others is given back instead",
        APP,
        step(put({"theirs": "kept"}), delete("app"), a={"theirs": "kept"}, b=None),
        looked({f"labels of app in {A}": None}),
        deleted=1,
    ),
    row(
        "a source that is made again meanwhile is copied once that is gone",
        APP,
        step(finalize(A, MINE), delete("app")),
        step(source("app", TWO), a=ONE, b=TWO),
        step(finalize(A), a=TWO),
        deleted=2,
    ),
    row(
        "it goes as well while the operator is down",
        APP,
        step(source("other", TWO)),
        step(delete("app"), restarted=True, a=None),
        looked({f"other in {A}": TWO}),
        deleted=2,
    ),
    row(
        "a source that is made anew in the meantime keeps the copies",
        APP,
        step(delete("app"), source("app", TWO), restarted=True, a=TWO),
    ),
)
# What the API server lets nobody change: the type, and the values of an immutable copy.
MADE_ANEW = (
    row(
        "copies may have another type, and are made anew for it",
        step(source("app", ONE, type_="Opaque")),
        looked({f"type of app in {A}": "Opaque"}),
        step(source("app", ONE, type_="example.com/app"), a=ONE),
        looked({f"type of app in {A}": "example.com/app"}),
        deleted=2,
    ),
    row(
        "an immutable copy is made anew when its source was",
        step(source("app", BOTH_KEYS, immutable=True), a=BOTH_KEYS),
        looked({f"immutable of app in {A}": True}),
        step(delete("app"), source("app", TWO, immutable=True), a=TWO),
        deleted=2,
    ),
    row(
        "an immutable copy with a key that its source lacks is made anew",
        step(source("app", BOTH_KEYS, immutable=True)),
        step(delete("app"), source("app", ONE, immutable=True), a=ONE),
        deleted=2,
    ),
    row(
        "one with keys of others is not, and the source says so",
        APP,
        step(
            put({"theirs": "kept"}), source("app", ONE, type_="Opaque"), a=ONE | {"theirs": "kept"}
        ),
        looked({"told app": {"Immutable": Part("in team-a: Secret/app cannot be changed")}}),
        deleted=1,
    ),
)
ROWS = (*COPIES, *OF_OTHERS, *TARGETS, *MISTAKES, *REMOVAL, *MADE_ANEW)


async def rest(world: World) -> None:
    """Let all be done that comes in some minutes; the next step comes a second later."""
    for _ in range(12):
        before = world.server.version
        await world.settle()
        if world.server.version == before:
            break
    world.server.now += 1
    assert world.failures == []


@pytest.mark.parametrize("row", [pytest.param(one, id=one.name) for one in ROWS])
async def test_row(row: Row):
    world = Syncing(A, B).world
    await play(world, row.steps, WorldPeople(world, HOME), rest)

    writes = [line for line in world.writes if "Event" not in line]
    assert sum(line.startswith("delete") for line in writes) == row.deleted
    assert not [line for line in writes if f" {HOME}/" in line or "Namespace" in line]
    before, version = len(world.writes), world.server.version
    await rest(world)
    world.restart()
    await rest(world)
    assert [line for line in world.writes[before:] if "Event" not in line] == []
    assert world.server.version == version, "an Event that is sent again changes nothing"
