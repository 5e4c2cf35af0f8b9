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

from hedgerow.testing.api import Api, Object
from hedgerow.testing.memory.kind import ServedKind
from hedgerow.testing.memory.kinds import BUILTIN
from hedgerow.testing.memory.server import Server
from model.bodies import NAMESPACE
from model.mistyped import UNKNOWN, mistyped
from model.ours import bluegreen, memcached
from model.programs import ModelWorld, Request, World, laid, programs
from model.subjects import SUBJECTS
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


@pytest.mark.parametrize("kind", [*BUILTIN, memcached()], ids=lambda kind: kind.api.kind)
def test_both_refuse_a_value_of_another_type_and_an_unknown_field(
    api: Api, kind: ServedKind
) -> None:
    """Fact: which types and fields the real server refuses."""
    metadata = {"name": f"mistyped-{RUN}", "namespace": NAMESPACE}
    target = {"apiVersion": kind.api.group_version, "kind": kind.api.kind, "metadata": metadata}
    worlds: list[World] = [RealWorld(api), ModelWorld(Server([kind], [NAMESPACE]))]
    taken: list[str] = []
    for path, body in mistyped(kind):
        whole = laid(target, body)
        answers = [world.apply(whole, "one", dry_run=True) for world in worlds]
        if UNKNOWN not in path:  # a POST drops what it does not know
            answers += [world.create(whole, "one") for world in worlds]
        taken += [f"{path}: {answer.code}" for answer in answers if answer.body is not None]

    assert taken == []
