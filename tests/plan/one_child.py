"""One child: what is declared, what there is of it, and the plan for that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hedgerow.contract import Apply, Child, Desired
from hedgerow.objects import Installation, ObjectRef
from hedgerow.plan.children import Plan, plan_resource
from hedgerow.plan.input import PlanInput
from hedgerow.plan.ledger import LedgerEntry
from hedgerow.plan.writes import ChildId, Write, declare
from hedgerow.plan.yield_and_claim import NO_FIELD_POLICY, FieldPolicy
from hedgerow_schemas.base import ApiResource, ContestedField, Status, View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment, Service
from plan.made import in_one_turn, live

Object = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = ObjectRef(BlueGreen.api, "ns", "demo", "owner-uid")


class ConfigMap(View):
    api = ApiResource("v1", "ConfigMap", "configmaps")
    __slots__ = ()


OWNS = (ConfigMap, Deployment, Service)
ID: ChildId = ("ConfigMap", "settings")
DATA = {"a": "1", "b": "2"}
CHILD = Apply(ConfigMap, "settings", {"data": DATA})
WANT = declare(CHILD, OWNER, "bluegreen")


def plan_input(
    there: Object | None = None,
    *,
    history: LedgerEntry | None = None,
    name_conflict: Object | None = None,
    reported: tuple[ContestedField, ...] = (),
    now: datetime = NOW,
    content_version: int = 0,
    field_policy: FieldPolicy = NO_FIELD_POLICY,
    **others: Object,
) -> PlanInput:
    objects = {ID: there} if there else {}
    objects |= {("ConfigMap", name): obj for name, obj in others.items()}
    return PlanInput(
        OWNER,
        "bluegreen",
        Installation(),
        now,
        objects,
        namesake={ID: name_conflict}.get,
        entries={ID: history} if history else {},
        before=Status(contested=reported),
        field_policy=field_policy,
        content_versions={ID: content_version} if content_version else {},
    )


def planned(made: PlanInput, *children: Child) -> Plan:
    return in_one_turn(plan_resource(made, Desired(children=children or (CHILD,)), OWNS))


def only_write(made: Plan) -> Write:
    (write,) = made.writes
    return write


def settled_past(want: Object = WANT, seen: Object | None = None) -> LedgerEntry:
    """What a pass remembers that found the child settled."""
    return planned(plan_input(seen or live(want), content_version=1)).judged[ID]


def nobodys(path: str = ".data.a") -> ContestedField:
    """A field that somebody removed again after it had been put back."""
    return ContestedField(
        object="ConfigMap/settings", path=path, reason="Removed", declared='"1"', since=NOW
    )
