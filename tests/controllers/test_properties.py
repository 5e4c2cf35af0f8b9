"""What holds for every controller, whatever it is given."""

from __future__ import annotations

import copy
import json
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.subject import NOW, Subject
from controllers.worlds import SUBJECTS, SWITCHING
from hedgerow.contract import Apply, Create, Desired, Observed
from hedgerow.fields import ownership
from hedgerow.objects import Installation, ObjectRef
from hedgerow.plan.children import plan_resource
from hedgerow.plan.input import PlanInput
from hedgerow.plan.ledger import LedgerEntry
from hedgerow.plan.writes import Write
from hedgerow_schemas.base import CustomResource
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.server import Server
from model import ours
from plan.made import in_one_turn

Object = dict[str, Any]

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

composed = pytest.mark.parametrize("subject", [*SUBJECTS, SWITCHING], ids=str)
subjects = pytest.mark.parametrize("subject", SUBJECTS, ids=str)


def observe(data: st.DataObject, subject: Subject) -> tuple[CustomResource, Observed]:
    resource = subject.read(data.draw(subject.resources))
    return resource, data.draw(subject.hostile(resource.metadata.name))


@composed
class TestCompose:
    @given(data=st.data())
    def test_it_is_total_and_deterministic_and_changes_nothing_it_is_given(self, subject, data):
        resource, observed = observe(data, subject)
        before = copy.deepcopy((resource, observed.children, observed.related))

        first = subject.compose(resource, observed)
        again = subject.compose(copy.deepcopy(resource), copy.deepcopy(observed))

        assert first == again
        raws = [[v.raw for v in views] for views in (observed.children, observed.related)]
        assert [[v.raw for v in views] for views in before[1:]] == raws
        assert before[0] == resource

    # To draw a world takes longer than to look at what is composed of it.
    @given(data=st.data())
    def test_children_are_as_declared_and_of_names_that_the_server_takes(self, subject, data):
        resource, observed = observe(data, subject)
        desired = subject.compose(resource, observed)
        named = [(child.kind, child.name) for child in desired.children]

        assert len(set(named)) == len(named)
        assert {kind for kind, _ in named} <= set(subject.controller.owns)
        for child in desired.children:
            assert SUBDOMAIN.fullmatch(child.name)
            assert len(child.name) <= 253
            if child.kind.api.kind == "Service":
                assert LABEL_1035.fullmatch(child.name)
                assert len(child.name) <= 63
            if isinstance(child, Apply | Create):
                patterns = subject.controller.names_of(child.kind)
                names = [pattern.format(resource.metadata.name) for pattern in patterns]
                assert any(fnmatchcase(child.name, name) for name in names)
                assert json.loads(json.dumps(child.fields)) == child.fields
                assert not {"apiVersion", "kind", "status"} & child.fields.keys()
        # It always says whether it is ready, and each condition once.
        types = [condition.type for condition in desired.status.conditions]
        assert "Ready" in types
        assert len(set(types)) == len(types)


class Converger:
    """Carries plans out on the cluster in memory, as purely as the plans were made."""

    def __init__(self, subject: Subject, resource: Object) -> None:
        self.subject = subject
        self.server = Server(
            (
                *kinds.BUILTIN,
                ours.bluegreen(),
                ours.cronjob(),
                ours.guestbook(),
                ours.memcached(),
            )
        )
        body = {k: v for k, v in resource.items() if k != "status"}
        identity = {k: v for k, v in body["metadata"].items() if k != "uid"}
        self.live = self.server.apply({**body, "metadata": identity}, "user")[0]
        self.resource = subject.read(self.live)
        meta = self.live["metadata"]
        api = subject.controller.resource.api
        self.owner = ObjectRef(api, meta["namespace"], meta["name"], meta["uid"])
        self.history: dict[tuple[str, str], LedgerEntry] = {}

    def roll_out(self) -> None:
        """Do what the Deployment controller does once every pod is available."""
        for live in self.server.list("apps", "Deployment").items:
            wanted = live["spec"]["replicas"]
            names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            available = {"type": "Available", "status": "True", "reason": "", "message": ""}
            status = {
                "observedGeneration": live["metadata"]["generation"],
                **dict.fromkeys(names, wanted),
                "conditions": [available],
            }
            self.server.update({**live, "status": status}, "kube-controller-manager", "status")

    def look(self) -> tuple[Desired, PlanInput]:
        controller = self.subject.controller
        owned = [
            (kind, item)
            for kind in controller.owns
            for item in self.server.list(kind.api.group, kind.api.kind).items
        ]
        observed = Observed(NOW, tuple(kind(item) for kind, item in owned))
        live = {(kind.api.kind, item["metadata"]["name"]): item for kind, item in owned}
        plan_input = PlanInput(
            self.owner, controller.name, Installation(), NOW, live, entries=self.history
        )
        return self.subject.compose(self.resource, observed), plan_input

    def step(self) -> bool:
        """Make the first planned write or deletion; give whether there was one."""
        self.roll_out()
        desired, plan_input = self.look()
        planned = in_one_turn(plan_resource(plan_input, desired, self.subject.controller.owns))
        assert (planned.contested, planned.problems) == ((), ())
        self.history = dict(planned.judged)
        if planned.writes:
            self.write(planned.writes[0], plan_input.field_manager)
            return True
        for deletion in planned.deletions:
            ref = deletion.ref
            target = {"apiVersion": ref.api.group_version, "kind": ref.api.kind}
            self.server.delete(
                {**target, "metadata": {"name": ref.name, "namespace": ref.namespace}}
            )
        return bool(planned.deletions)

    def converge(self) -> None:
        for _ in range(20):
            if not self.step():
                return
        raise AssertionError("it does not settle")

    def write(self, write: Write, manager: str) -> None:
        self.server.apply(write.body, manager)


@subjects
class TestConvergence:
    @settings(max_examples=settings().max_examples * 2 // 5)
    @given(data=st.data())
    def test_it_settles_and_a_settled_world_is_a_fixpoint(self, subject, data):
        world = Converger(subject, data.draw(subject.resources))
        world.converge()
        settled, version = world.look()[0], world.server.version

        world.history = {}
        assert not world.step()
        assert world.look()[0] == settled
        assert world.server.version == version


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if not s.lasting], ids=str)
class TestForgetting:
    @settings(max_examples=settings().max_examples * 2 // 5)
    @given(data=st.data())
    def test_another_declaration_settles_as_if_it_had_always_been_so(self, subject, data):
        first, then = data.draw(subject.resources), data.draw(subject.resources)
        then = {**then, "metadata": first["metadata"]}
        world, fresh = Converger(subject, first), Converger(subject, then)
        world.converge()
        fresh.converge()
        body = {k: v for k, v in then.items() if k != "status"}
        identity = {k: v for k, v in body["metadata"].items() if k != "uid"}
        world.resource = subject.read(world.server.apply({**body, "metadata": identity}, "user")[0])
        world.converge()

        assert shape(world) == shape(fresh)


def shape(world: Converger) -> dict[tuple[str, str], Any]:
    """What we hold of each child; what the server defaulted meanwhile is nobody's."""
    _, plan_input = world.look()
    return {
        key: ownership.entry(item, plan_input.field_manager)
        for key, item in plan_input.live.items()
    }
