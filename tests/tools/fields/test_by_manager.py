from __future__ import annotations

from typing import Any

import pytest

from hedgerow.encoding import decode, encode
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.fields.by_manager import (
    MOST_NAMED,
    CountedObject,
    CountScope,
    leftovers,
    managers,
    tally,
)
from tools.fields.test_relabelling import BEFORE, COPY, CSA, LAST_APPLIED, entry, spec

Object = dict[str, Any]
DEPLOYMENT = ApiResource("apps/v1", "Deployment", "deployments")
SECRET = ApiResource("v1", "Secret", "secrets")
SERVED = {"apps/v1", "v1"}
SCOPE = CountScope("shop")
HPA = "kube-controller-manager/Update/scale"
REPLICAS = spec("replicas")


def counted(*entries: Object, name: str = "web", api: ApiResource = DEPLOYMENT) -> CountedObject:
    meta = {"name": name, "namespace": "shop", "managedFields": list(entries)}
    return CountedObject(api, tally({"metadata": meta}, SERVED))


def told(*objects: CountedObject, **more: Any) -> list[tuple[str, str]]:
    scalers = more.pop("scalers", frozenset())
    found = leftovers(objects, CountScope("shop", **more), scalers)
    return [(one.reason, one.command) for one in found]


class TestManagers:
    def test_fields_and_objects_are_counted_by_operation_and_subresource(self):
        one = counted(
            entry("a", spec("x", "y")),
            entry("a/Update", spec("z")),
            entry("b/Update", spec("x")),
            entry("b/Update", spec("y"), "apps/v2"),
        )
        other = counted(entry("a", spec("x")), entry("b/Update/scale", REPLICAS), api=SECRET)

        rows = [
            (row.manager, row.operation, row.subresource, row.fields, row.objects)
            for row in managers([one, other])
        ]

        assert rows == [
            ("a", "Apply", "", 3, 2),
            ("b", "Update", "", 2, 1),
            ("a", "Update", "", 1, 1),
            ("b", "Update", "scale", 1, 1),
        ]


class TestLeftovers:
    @pytest.mark.parametrize(
        ("entries", "found"),
        [
            ([entry("a", spec("x"))], []),
            ([entry(f"{CSA}/Update", spec("x"))], []),
            ([entry("Helm/Update", spec("x")), entry("helm/Update", spec("y"))], []),
            ([entry("a", spec("x")), entry("a/Update/status", spec("y"))], []),
            ([entry("kubectl-last-applied", COPY), entry(f"{CSA}/Update", spec("x"))], []),
            ([entry("scaler", REPLICAS), entry(f"{CSA}/Update", spec("x", "y"))], []),
            ([entry("scaler", REPLICAS), entry(f"{BEFORE}/Update", spec("x", "y"))], []),
            (
                [entry("a", spec("x")), entry("b", spec("y", "z")), entry(f"{CSA}/Update", COPY)],
                [f"adopt --all -n shop --from {CSA} --to b"],
            ),
            (
                [entry("a", spec("x")), entry("argo/Update", COPY)],
                [f"adopt --all -n shop --from {CSA} --to a"],
            ),
            (
                [entry("helm", spec("x")), entry("Helm/Update", spec("y"))],
                ["adopt --all -n shop --from 'Helm Update,helm Update' --to helm"],
            ),
            (
                [entry("helm", spec("x")), entry("helm/Update/scale", spec("y"))],
                ["adopt --all -n shop --from 'Helm Update,helm Update' --to helm"],
            ),
            (
                [entry("a;b", spec("x")), entry("a;b/Update", spec("y"))],
                ["adopt --all -n shop --from 'a;b Update' --to 'a;b'"],
            ),
        ],
    )
    def test_managers_that_are_one_under_several_names(self, entries, found):
        assert told(counted(*entries)) == [("several names", f"hedgerow {one}") for one in found]

    @pytest.mark.parametrize(
        ("copy", "to"),
        [({"x": 1, "y": 1}, "a"), ({"x": 1, "y": 1, "z": 1}, ""), (None, ""), ([], "")],
    )
    def test_of_a_copy_of_the_manifest_somebody_applies_half_whatever_defaults_there_are(
        self, copy, to
    ):
        text = "no JSON" if copy is None else encode({"spec": copy}).decode()
        whole = entry(f"{CSA}/Update", spec("y", "z", "default", "other") | COPY)
        meta = {"name": "x", "annotations": {LAST_APPLIED: text}}
        live = {"metadata": {**meta, "managedFields": [entry("a", spec("x")), whole]}}

        assert tally(live, SERVED).applier == to

    def test_what_was_there_before_the_first_apply_is_told_by_itself(self):
        first = entry("a", spec("x")), entry(f"{BEFORE}/Update", spec("y"))
        applied = entry("a", spec("x")), entry(f"{BEFORE}/Update", COPY)

        before = ("before the first apply", f"hedgerow adopt --all -n shop --from {BEFORE} --to a")
        several = ("several names", f"hedgerow adopt --all -n shop --from {CSA} --to a")
        named = f"hedgerow adopt deployment.apps/web -n shop --from {BEFORE} --to a"
        assert told(counted(*first)) == [before]
        assert told(counted(*applied)) == [several]
        assert told(counted(*first), counted(*applied, name="o")) == [several, (before[0], named)]

    def test_where_others_have_such_entries_too_objects_are_named(self):
        mine = entry("a", spec("x")), entry("a/Update", spec("y"))
        other = entry("a/Update", spec("y")), entry("b", spec("x"))

        found = told(counted(*mine), counted(*mine, api=SECRET), counted(*other, name="o"))

        words = "deployment.apps/web secret/web -n shop --from 'a Update' --to a"
        assert found == [("several names", f"hedgerow adopt {words}")]

    def test_what_a_controller_made_is_left_alone_unless_it_is_named(self):
        entries = entry("a", spec("x")), entry("a/Update", spec("y"))
        owner = {"uid": "u", "controller": True}
        meta = {"name": "web-1", "namespace": "shop", "ownerReferences": [owner]}
        live = {"metadata": {**meta, "managedFields": list(entries)}}
        made = CountedObject(DEPLOYMENT, tally(live, SERVED))
        command = "hedgerow adopt deployment.apps/web-1 -n shop --from 'a Update' --to a"

        assert told(made) == []
        assert told(made, named=True) == [("several names", command)]

    def test_a_command_names_so_many_and_the_json_names_all(self):
        mine = entry("a", spec("x")), entry("a/Update", spec("y"))
        many = [counted(*mine, name=f"n{number}") for number in range(MOST_NAMED + 1)]
        other = counted(entry("a/Update", spec("y")))

        [found] = leftovers([*many, other], SCOPE, None)

        assert found.command.count("deployment.apps/n") == MOST_NAMED
        assert len(found.objects) == MOST_NAMED + 1

    def test_versions_that_are_not_served_come_first(self):
        entries = entry("a", spec("x"), "old/v1"), entry("a/Update", spec("y"))

        found = told(counted(*entries), labels="app in (a)", program="my op")

        assert [command for _, command in found] == [
            "my op adopt --repair -l 'app in (a)' -n shop",
            "my op adopt -l 'app in (a)' -n shop --from 'a Update' --to a",
        ]
        assert found[0][0] == "unserved version"

    @pytest.mark.parametrize(
        ("entries", "scalers", "is_found"),
        [
            ([entry(HPA, REPLICAS), entry("a", spec("x"))], frozenset(), True),
            ([entry(HPA, REPLICAS), entry("a", spec("x"))], {("Deployment", "web")}, False),
            ([entry(HPA, REPLICAS), entry("a", spec("x"))], {("Deployment", "other")}, True),
            ([entry(HPA, REPLICAS), entry("a", spec("x"))], None, False),
            ([entry(HPA, REPLICAS)], frozenset(), False),
            (
                [entry(HPA, REPLICAS), entry("a", spec("x")), entry("b/Update", spec("y", "z"))],
                frozenset(),
                False,
            ),
            ([entry("kubectl/Update/scale", REPLICAS), entry("a", {})], frozenset(), False),
            ([entry(HPA, spec("paused")), entry("a", spec("x"))], frozenset(), False),
        ],
    )
    def test_replicas_of_an_autoscaler_that_is_gone(self, entries, scalers, is_found):
        options = "--from 'kube-controller-manager Update scale' --to a"
        command = f"hedgerow adopt --all -n shop {options}"

        found = told(counted(*entries), scalers=scalers)

        assert found == ([("autoscaler is gone", command)] if is_found else [])


def test_rows_and_leftovers_are_their_own_json():
    cluster_wide = ApiResource("v1", "Namespace", "namespaces", namespaced=False)
    meta = {"name": "n", "managedFields": [entry("a", spec("x"), "v0")]}
    one = CountedObject(cluster_wide, tally({"metadata": meta}, SERVED))
    several = counted(
        entry("a", spec("x")), entry("a/Update/scale", spec("y")), entry("a/Update", {})
    )
    objects = [one, several]

    rows, left = managers(objects), leftovers(objects, SCOPE, None)

    assert decode(encode({"managers": rows, "leftovers": left})) == {
        "managers": [
            {
                "manager": "a",
                "operation": "Apply",
                "fields": 2,
                "objects": 2,
                "kinds": {"Namespace": 1, "Deployment": 1},
            },
            {
                "manager": "a",
                "operation": "Update",
                "subresource": "scale",
                "fields": 1,
                "objects": 1,
                "kinds": {"Deployment": 1},
            },
            {
                "manager": "a",
                "operation": "Update",
                "fields": 0,
                "objects": 1,
                "kinds": {"Deployment": 1},
            },
        ],
        "leftovers": [
            {
                "reason": "unserved version",
                "versions": ["v0"],
                "objects": [{"apiVersion": "v1", "kind": "Namespace", "name": "n"}],
                "command": "hedgerow adopt --repair --all -n shop",
            },
            {
                "reason": "several names",
                "managers": ["a"],
                "to": "a",
                "objects": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "namespace": "shop",
                        "name": "web",
                    }
                ],
                "command": "hedgerow adopt --all -n shop --from 'a Update' --to a",
            },
        ],
    }
