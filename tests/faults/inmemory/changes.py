"""Changes: one spec after another, valid and invalid, in the manner of Acto.

Whatever was declared before, the last valid spec ends as a fresh deployment of it does; what is
not valid is refused by the server or told by the status, and does not stay in the way.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

import anyio
from hypothesis import strategies as st
from pydantic import ValidationError

from controllers.subject import Subject
from faults.endings import difference
from faults.inmemory.backend import Memory, MemoryRun
from faults.scenario import USER, Scenario, roll_out, target
from faults.verdict import failed
from hedgerow.plan.yield_and_claim import YIELD
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.schema import Object

REST, LONG = 2.0, 400.0
"""Seconds without a write after which a change has come to rest, one that was refused meanwhile."""
DEPLOYMENT: Object = {"apiVersion": "apps/v1", "kind": "Deployment"}
NEVER = {"schedule": "0 0 30 2 *"}
"""A schedule without any start: what was started before is no part of what is declared."""
JUNK: tuple[Any, ...] = ({"x": 1}, [[]], "no such thing", -7, 10**12, True)
_PULL = re.compile(r'"imagePullPolicy": "\w+"')
"""The server chooses it when a Deployment is created, and never again (Kubernetes, Images)."""


@dataclass(frozen=True)
class Change:
    """One spec that a user applies, with the annotations that come with it."""

    spec: Object
    annotations: Object
    valid: bool


@dataclass(frozen=True)
class Changed:
    """What came of some changes."""

    left: str
    """All there is in the end."""
    untold: tuple[Object, ...]
    """The invalid specs that were neither refused nor told of."""
    taken: bool
    """Whether the server took the last one: an apply that empties a map may be refused there."""
    wrong: tuple[str, ...]


def changes(subject: Subject, *, longest: int = 4) -> st.SearchStrategy[list[Change]]:
    """Return sequences of changes, of which the last is valid."""
    return st.builds(
        lambda before, last: [*before, last],
        st.lists(st.one_of(_valid(subject), _invalid(subject)), max_size=longest - 1),
        _valid(subject),
    )


def _valid(subject: Subject) -> st.SearchStrategy[Change]:
    never = NEVER if subject.lasting else {}
    return subject.resources.map(lambda drawn: Change({**drawn["spec"], **never}, {}, True))


@st.composite
def _invalid(draw: st.DrawFn, subject: Subject) -> Change:
    """Return a valid spec with one field that is missing, or of a wrong type, or unknown."""
    spec = dict(draw(_valid(subject)).spec)
    fields = sorted(field.alias or name for name, field in _fields(subject).items())
    name = draw(st.sampled_from([*fields, "noSuchField", YIELD]))
    if name == YIELD:
        return Change(spec, {YIELD: "Deployment"}, False)
    if name in spec and draw(st.booleans()):
        del spec[name]
    else:
        spec[name] = draw(st.sampled_from(JUNK))
    return Change(spec, {}, _is_valid(subject, spec))


def _fields(subject: Subject) -> Any:
    spec = subject.controller.resource.model_fields["spec"].annotation
    (model,) = (each for each in get_args(spec) or (spec,) if each is not NoneType)
    return model.model_fields


def _is_valid(subject: Subject, spec: Object) -> bool:
    try:
        subject.controller.resource.model_validate(_resource(subject, Change(spec, {}, True)))
    except ValidationError:
        return False
    return True


def _resource(subject: Subject, change: Change) -> Object:
    api = subject.controller.resource.api
    metadata: Object = {"name": "cron"}
    if change.annotations:
        metadata["annotations"] = change.annotations
    body = {"apiVersion": api.group_version, "kind": api.kind, "metadata": metadata}
    return {**body, "spec": change.spec}


def made(subject: Subject, sequence: list[Change]) -> Changed:
    """Apply one change after another, each once the last has come to rest."""

    async def main(run: MemoryRun) -> Changed:
        untold: list[Object] = []
        taken = False
        run.start()
        await anyio.sleep(1)
        for change in sequence:
            body = _resource(subject, change)
            try:
                run.people.apply(body, USER, force=True)
            except Refused:
                taken = False
                continue
            taken = True
            await run.quiet(REST)
            await _roll_out(run)
            if not change.valid and not _told(run.people.get(body)):
                untold.append(change.spec)
        await run.quiet(LONG)
        left = json.dumps(run.ending(), sort_keys=True)
        return Changed(_PULL.sub("PULL", left), tuple(untold), taken, tuple(failed(run.operators)))

    scenario = Scenario("changes", subject.controller.name, _resource(subject, sequence[0]), ())
    return Memory().play(scenario, main)


async def _roll_out(run: MemoryRun) -> None:
    """Roll out every Deployment, as the Deployment controller does, until none is changed."""
    while behind := [live for live in run.people.every(DEPLOYMENT) if _is_behind(live)]:
        roll_out(*(target("apps/v1", "Deployment", live["metadata"]["name"]) for live in behind))(
            run.people
        )
        await run.quiet(REST)


def _is_behind(live: Object) -> bool:
    return live.get("status", {}).get("observedGeneration") != live["metadata"]["generation"]


def _told(live: Object | None) -> bool:
    conditions = (live or {}).get("status", {}).get("conditions", [])
    # A schedule without a start in the time that is simulated hides nothing.
    others = [condition for condition in conditions if condition["reason"] != "NeverAgain"]
    states = {condition["type"]: condition["status"] for condition in others}
    return states.get("Stalled") == "True" or states.get("Ready") == "False"


def wrong(subject: Subject, sequence: list[Change]) -> list[str]:
    """Return what must not be."""
    changed, fresh = made(subject, sequence), made(subject, sequence[-1:])
    found = [*changed.wrong]
    if changed.taken and changed.left != fresh.left:
        found += difference(json.loads(fresh.left), json.loads(changed.left))
    found += [f"not told: {spec}" for spec in changed.untold]
    return found
