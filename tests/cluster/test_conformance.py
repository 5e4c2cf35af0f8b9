"""Conformance: the model answers what the real server answers, whatever is asked."""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from hedgerow_testing.api import Api, Object
from hedgerow_testing.memory.admission import patched
from hedgerow_testing.memory.kind import ServedKind, custom
from hedgerow_testing.memory.kinds import BUILTIN
from hedgerow_testing.memory.server import Server
from model.bodies import NAMESPACE
from model.bounds import of_bounds, values
from model.mistyped import UNKNOWN, is_dropped, mistyped_by_sort
from model.ours import bluegreen, cronjob, guestbook, memcached
from model.programs import ModelWorld, Outcome, Request, World, laid, programs
from model.subjects import SUBJECTS, Subject
from support.cluster.definitions import define
from support.cluster.worlds import RealWorld, with_custom_resources

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]

RUN, NUMBERS = secrets.token_hex(3), itertools.count()


@pytest.fixture(scope="module")
def api(sandbox: Any) -> Iterator[Api]:
    connection = with_custom_resources(Api(sandbox.kubeconfig))
    connection.namespace(NAMESPACE)
    yield connection
    connection.close()


class Pair:
    """The same object in the model and on the real server."""

    def __init__(self, api: Api, target: Object) -> None:
        self.target = target
        self.model: World = ModelWorld(Server((*BUILTIN, bluegreen(), memcached()), [NAMESPACE]))
        self.real: World = RealWorld(api)
        self.before: list[Object | None] = [None, None]

    def ask(self, request: Request) -> None:
        """Send a request to both; compare the answers, what is stored, and whether it was."""
        note(f"{request}")
        expected, answered = (request.run(world, self.target) for world in (self.real, self.model))
        after = [world.get(self.target) for world in (self.real, self.model)]

        assert (expected.code, expected.error) == (answered.code, answered.error)
        assert expected.conflicts == answered.conflicts
        assert seen(after[0]) == seen(after[1])
        if expected.body and answered.body:  # a delete answers with a Status or the object
            assert seen(expected.body) == seen(answered.body)
        # The real server may also rewrite what is stored in a spelling that is never shown.
        changed = seen(self.before[0]) != seen(after[0])
        assert (_version(self.before[1]) != _version(after[1])) == changed
        self.before = after


def seen(live: Object | None) -> Object | None:
    """An object without what each server assigns by itself."""
    if live is None:
        return None
    assigned = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"}
    # Labels that an apply empties are answered as null, where they are the last thing to go.
    told = {k: v for k, v in live["metadata"].items() if v is not None}
    metadata = {k: bool(v) if k in assigned else v for k, v in told.items()}
    entries = [{**entry, "time": ""} for entry in metadata.get("managedFields", ())]
    entries.sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    shown = {**live, "metadata": {**metadata, "managedFields": entries}}
    if live["kind"] == "Service" and "clusterIP" in live["spec"]:
        shown["spec"] = {**live["spec"], "clusterIP": "given", "clusterIPs": ["given"]}
    return shown


def _version(live: Object | None) -> str | None:
    return live and live["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.timeout(900)  # the nightly profile
@given(data=st.data())
def test_the_model_answers_as_the_server_does(api: Api, kind: str, data: st.DataObject) -> None:
    """Fact: what the real server answers to any sequence of writes."""
    subject = SUBJECTS[kind]
    metadata = {"name": f"subject-{RUN}-{next(NUMBERS)}", "namespace": NAMESPACE}
    pair = Pair(api, {"apiVersion": subject.api_version, "kind": kind, "metadata": metadata})
    try:
        for request in data.draw(programs(subject)):
            pair.ask(request)
    finally:
        api.merge(pair.target, {"metadata": {"finalizers": None}}, "test")
        api.delete(pair.target)


# Of each kind, on each version. Not above the test, whose source the examples are drawn by: they
# are the first half of the same ones.
settings(max_examples=settings().max_examples // 2)(test_the_model_answers_as_the_server_does)


def told(outcome: Outcome) -> tuple[Any, ...]:
    """What is to be alike in two answers: whether it was refused, with which code, and where."""
    if outcome.body is not None:
        return ("taken",)
    # Of several causes at one place the model has one. The server also names what it did not look
    # at any more, as <nil>, and where `scale` would have looked.
    return outcome.code, outcome.error, {at for at in outcome.causes if at[:1] not in {"<", "."}}


KINDS = [*BUILTIN, bluegreen(), memcached(), guestbook(), cronjob()]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.api.kind)
def test_both_refuse_a_value_of_another_type_and_an_unknown_field(
    api: Api, kind: ServedKind
) -> None:
    """Fact: which types and fields the real server refuses, with which code, and where it says."""
    target = {"apiVersion": kind.api.group_version, "kind": kind.api.kind}
    target |= {"metadata": {"name": f"mistyped-{RUN}", "namespace": NAMESPACE}}
    worlds: list[World] = [RealWorld(api), ModelWorld(Server([kind], [NAMESPACE]))]
    taken, other = list[str](), list[str]()
    for path, body in mistyped_by_sort(kind):
        whole = laid(target, body)
        asked = {"apply": [world.apply(whole, "one", dry_run=True) for world in worlds]}
        if not is_dropped(kind, path):
            asked["create"] = [world.create(whole, "one") for world in worlds]
        for verb, (real, model) in asked.items():
            if real.body is not None or model.body is not None:
                taken.append(f"{verb} of {path}: {real.code} and {model.code}")
            elif told(real) != told(model):
                other.append(f"{verb} of {path}: {told(real)} and {told(model)}")

    assert (taken, other) == ([], [])


@pytest.mark.parametrize("name", SUBJECTS)
def test_both_refuse_it_from_others_who_patch_and_replace(api: Api, name: str) -> None:
    """Fact: what the real server answers to a merge patch and a PUT with a wrong type."""
    subject, other = SUBJECTS[name], list[str]()
    [kind] = [kind for kind in KINDS if kind.api.kind == name and not _is_upstream(kind, subject)]
    metadata = {"name": f"edited-{RUN}", "namespace": NAMESPACE}
    target = {"apiVersion": subject.api_version, "kind": name, "metadata": metadata}
    worlds: list[World] = [RealWorld(api), ModelWorld(Server([kind], [NAMESPACE]))]
    for world in worlds:
        world.apply(laid(target, subject.first), "one").must()
    for path, body in mistyped_by_sort(kind):
        if UNKNOWN in path:
            continue
        asked = [
            [world.merge(target, body, "x", subresource) for world in worlds]
            for subresource in ("", "status")[: 1 + kind.status]
        ]
        asked += [[world.put(patched(world.get(target), body), "x") for world in worlds]]
        other += [
            f"{path}: {told(real)} and {told(model)}"
            for real, model in asked
            if real.code != model.code
        ]

    assert other == []


def _is_upstream(kind: ServedKind, subject: Subject) -> bool:
    return kind.api.group_version != subject.api_version


def test_both_hold_a_custom_resource_to_the_bounds_of_its_definition(api: Api) -> None:
    """Fact: which values the real server refuses by each word of a structural schema."""
    definition = of_bounds()
    define(api, definition, "test")
    api.served("bounds.example.com/v1")
    worlds: list[World] = [RealWorld(api), ModelWorld(Server([custom(definition)], [NAMESPACE]))]
    other = list[str]()
    for name, value, is_taken in values():
        thing = {"apiVersion": "bounds.example.com/v1", "kind": "Bound", "spec": {name: value}}
        thing["metadata"] = {"name": f"bound-{RUN}", "namespace": NAMESPACE}
        real, model = (world.apply(thing, "one", dry_run=True) for world in worlds)
        if real.code != model.code or (real.body is not None) != is_taken:
            other.append(f"{name}: {value!r}: {told(real)} and {told(model)}")

    assert other == []
