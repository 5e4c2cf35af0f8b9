"""List items of which nobody knows whose they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from hedgerow.fields.ownership import items_of_unknown_owner

Object = dict[str, Any]
BLUE, SIDE = 'k:{"name":"blue"}', 'k:{"name":"side"}'
HTTP = 'k:{"containerPort":80,"protocol":"TCP"}'
LIVE = {
    "metadata": {"finalizers": ["x/y"], "ownerReferences": [{"uid": "u"}]},
    "spec": {
        "replicas": 1,
        "containers": [
            {"name": "blue", "image": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
            {"name": "side", "image": "b"},
        ],
        "volumes": [{"name": "scratch"}],
        "tags": ["x"],
    },
    "status": {"conditions": [{"type": "Ready"}]},
}
TREE: Object = {
    "f:metadata": {
        "f:finalizers": {".": {}, 'v:"x/y"': {}},
        "f:ownerReferences": {'k:{"uid":"u"}': {}},
    },
    "f:spec": {
        "f:replicas": {},
        "f:containers": {
            BLUE: {".": {}, "f:name": {}, "f:image": {}, "f:ports": {".": {}, HTTP: {".": {}}}},
            SIDE: {".": {}, "f:name": {}, "f:image": {}},
        },
        "f:volumes": {".": {}, 'k:{"name":"scratch"}': {".": {}}},
        "f:tags": {'v:"x"': {}},
    },
    "f:status": {"f:conditions": {'k:{"type":"Ready"}': {}}},
}
ALL = {"containers": LIVE["spec"]["containers"], "volumes": [{"name": "scratch"}], "tags": ["x"]}


def live(*others: tuple[str, Object], before: bool = True) -> Object:
    entries = [("before-first-apply", TREE)] * before + list(others)
    managed = [
        {"manager": manager, "operation": "Update", "fieldsV1": tree} for manager, tree in entries
    ]
    return {**LIVE, "metadata": {**LIVE["metadata"], "managedFields": managed}}


@dataclass(frozen=True)
class Case:
    """What is declared below `spec`, and which items are told then."""

    name: str
    spec: Object
    told: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


VOLUME, TAG = '.spec.volumes[name="scratch"]', '.spec.tags[="x"]'
CASES = (
    Case("all is declared", ALL),
    Case("a container is not", ALL | {"containers": ALL["containers"][:1]},
         ('.spec.containers[name="side"]',)),
    Case("a port is not, within an item that is",
         ALL | {"containers": [{"name": "blue"}, {"name": "side"}]},
         ('.spec.containers[name="blue"].ports[containerPort=80,protocol="TCP"]',)),
    Case("a port is, its default key left out",
         ALL | {"containers": [{"name": "blue", "ports": [{"containerPort": 80}]},
                               {"name": "side"}]}),
    Case("a whole list is not", {"containers": ALL["containers"], "tags": ["x"]}, (VOLUME,)),
    Case("a set is empty", ALL | {"tags": []}, (TAG,)),
    Case("a list is of another shape", ALL | {"volumes": "x"}, (VOLUME,)),
)  # fmt: skip


class TestUnproven:
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_what_is_not_declared_is_told(self, case):
        found = items_of_unknown_owner({"spec": case.spec}, live())

        assert tuple(leaf.path for leaf in found) == case.told

    def test_each_is_a_conflict_with_the_record_of_nobody(self):
        (leaf,) = items_of_unknown_owner({"spec": ALL | {"tags": []}}, live())

        assert [holder.manager for holder in leaf.holders] == ["before-first-apply"]
        assert (leaf.want, leaf.live, leaf.equal) == (None, "x", False)

    def test_below_what_is_not_declared_nothing_is_looked_for(self):
        assert items_of_unknown_owner({"kind": "x"}, live()) == ()

    def test_what_somebody_else_holds_too_is_his(self):
        theirs: Object = {"f:spec": {"f:containers": {SIDE: {".": {}, "f:name": {}}}}}
        want = {"spec": ALL | {"containers": ALL["containers"][:1]}}

        assert items_of_unknown_owner(want, live(("injector", theirs))) == ()

    def test_what_is_gone_is_no_more_to_be_told(self):
        there = live()
        there["spec"] = {**there["spec"], "containers": there["spec"]["containers"][:1]}

        assert (
            items_of_unknown_owner({"spec": ALL | {"containers": ALL["containers"][:1]}}, there)
            == ()
        )

    def test_where_records_were_never_lost_nothing_is(self):
        assert (
            items_of_unknown_owner({"spec": {"containers": []}}, live(("helm", TREE), before=False))
            == ()
        )
