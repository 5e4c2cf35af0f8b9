"""Ownership facts: who holds what after a write, and what `judge` makes of it, on both servers."""

from __future__ import annotations

import pytest

from hedgerow.fields.managed_fields import all_holders, entry
from hedgerow.fields.ownership import judge, leave_out, residual
from hedgerow_testing.api import Object
from hedgerow_tools.fields.diff import difference
from model.programs import World
from support.cluster.facts import (
    OTHER,
    OURS,
    blue,
    config_map,
    deployment,
    identity,
    named,
    open_world,
    status,
    visible,
    with_meta,
)  # fmt: skip

pytestmark = pytest.mark.cluster


@pytest.fixture(params=["model", pytest.param("real", marks=pytest.mark.oldest)], scope="module")
def world(request: pytest.FixtureRequest) -> World:
    return open_world(request)


class TestChanging:
    @pytest.mark.parametrize("replicas", [{}, {"replicas": 2}])
    def test_an_apply_that_changes_nothing_keeps_the_version(
        self, world: World, replicas: Object
    ) -> None:
        """Fact: both keep the version where an apply changes nothing."""
        body = deployment(**replicas)
        first = world.apply(body, OURS)

        assert world.apply(body, OURS).version == first.version

    def test_so_does_one_in_another_spelling(self, world: World) -> None:
        """Fact: both read another spelling as the same value."""
        body = deployment(paused=False, minReadySeconds=0)
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {
            "limits": {"cpu": "1000m"}
        }
        first = world.apply(body, OURS)

        assert world.apply(body, OURS).version == first.version

    def test_a_dry_run_stores_nothing(self, world: World) -> None:
        """Fact: both answer a dry run with what would be, and store nothing."""
        body = config_map(a="1")
        first = world.apply(body, OURS)
        dry = world.apply({**body, "data": {"a": "2"}}, OURS, dry_run=True)

        assert dry.must()["data"] == {"a": "2"}
        assert world.get(body) == first.must()

    def test_the_generation_counts_specifications_only(self, world: World) -> None:
        """Fact: both count the generation for the spec alone."""
        body = deployment(replicas=1)
        world.apply(body, OURS)
        labelled = world.apply(with_meta(body, labels={"a": "b"}), OURS).must()
        scaled = world.apply(deployment(replicas=2) | {"metadata": body["metadata"]}, OURS).must()

        assert labelled["metadata"]["generation"] == 1
        assert scaled["metadata"]["generation"] == 2

    def test_a_status_has_an_entry_of_its_own(self, world: World) -> None:
        """Fact: both keep a status in an entry of its own."""
        body = blue()
        first = world.apply(body, OURS).must()
        live = world.apply(status(body, {"routeTo": "Blue"}), OURS, subresource="status").must()

        assert entry(live, OURS) == entry(first, OURS)
        assert entry(live, OURS, "status") == {"f:status": {"f:routeTo": {}}}
        assert live["metadata"]["generation"] == 1

    def test_a_status_in_the_main_body_is_dropped_and_not_owned(self, world: World) -> None:
        """Fact: both drop a status that is applied to the main resource."""
        body = {**blue(), "status": {"routeTo": "Green"}}
        live = world.apply(body, OURS).must()

        assert "status" not in live
        assert "f:status" not in (entry(live, OURS) or {})

    def test_what_its_only_owner_releases_falls_back_to_the_default(self, world: World) -> None:
        """Fact: both fill in the default of what its only holder released."""
        body = deployment(replicas=3)
        world.apply(body, OURS)
        released = deployment() | {"metadata": body["metadata"]}

        assert world.apply(released, OURS).must()["spec"]["replicas"] == 1

    def test_what_another_owns_too_stays(self, world: World) -> None:
        """Fact: both keep what another still holds."""
        body = config_map(a="1")
        world.apply(body, OURS)
        world.apply(body, OTHER)

        assert world.apply(identity(body), OURS).must()["data"] == {"a": "1"}


class TestOrder:
    @staticmethod
    def containers(*names: str) -> Object:
        labels = {"app": "x"}
        pod = {"containers": [{"name": name, "image": "app:1"} for name in names]}
        return deployment(template={"metadata": {"labels": labels}, "spec": pod})

    def test_an_apply_in_another_order_alone_is_a_change_in_that_order(self, world: World) -> None:
        """Fact: both keep the order of the last apply, and count a new generation for it."""
        first, second = self.containers("a", "b"), self.containers("b", "a")
        before = world.apply(first, OURS).must()
        want = {**second, "metadata": first["metadata"]}
        after = world.apply(want, OURS).must()

        names = [one["name"] for one in after["spec"]["template"]["spec"]["containers"]]
        assert names == ["b", "a"]
        assert after["metadata"]["generation"] == 2
        assert entry(after, OURS) == entry(before, OURS)
        assert [leaf.why for leaf in judge(want, before, OURS).leaves] == ["order"]
        assert judge(want, after, OURS).settled

    def test_an_update_that_only_reorders_is_recorded_nowhere(self, world: World) -> None:
        """Fact: both take an update's order, and give no entry for it to anybody."""
        body = self.containers("a", "b")
        before = world.apply(body, OURS).must()
        items = before["spec"]["template"]["spec"]["containers"]
        pod = {"spec": {"template": {"spec": {"containers": items[::-1]}}}}
        after = world.merge(body, pod, OTHER).must()

        names = [one["name"] for one in after["spec"]["template"]["spec"]["containers"]]
        assert names == ["b", "a"]
        assert [one.manager for one in all_holders(after)] == [OURS]
        assert [(line.kind, line.path) for line in difference(before, after, OURS)] == [
            ("moved", ".spec.template.spec.containers")
        ]


class TestConflicts:
    def test_an_unforced_apply_takes_nothing(self, world: World) -> None:
        """Fact: both refuse an unforced apply as a whole, and name the fields."""
        body = config_map(a="1", b="1")
        world.apply(body, OTHER)

        answer = world.apply({**body, "data": {"a": "2", "c": "1"}}, OURS)

        assert (answer.code, answer.error) == (409, "Conflict")
        assert answer.conflicts == (".data.a",)
        assert (world.get(body) or {})["data"] == {"a": "1", "b": "1"}

    def test_a_conflict_comes_before_a_stale_version(self, world: World) -> None:
        """Fact: both tell the conflict where the version is stale as well."""
        body = config_map(a="1")
        world.apply(body, OTHER)

        answer = world.apply(with_meta({**body, "data": {"a": "2"}}, resourceVersion="1"), OURS)

        assert answer.error == "Conflict"

    def test_what_is_contested_can_be_left_out_and_the_rest_applied(self, world: World) -> None:
        """Fact: both take an apply without what is contested."""
        body = deployment(replicas=2)
        world.apply(body, OURS)
        live = world.merge(body, {"spec": {"replicas": 5}}, "kubectl", "scale").must()
        want = deployment(replicas=2, paused=True) | {"metadata": body["metadata"]}

        contested = judge(want, live, OURS).contested
        refused = world.apply(want, OURS)
        rest = world.apply(leave_out(want, contested), OURS).must()

        assert refused.conflicts == (".spec.replicas",) == tuple(leaf.path for leaf in contested)
        assert [leaf.holders[0].subresource for leaf in contested] == ["scale"]
        assert (rest["spec"]["replicas"], rest["spec"]["paused"]) == (5, True)

    def test_a_scale_of_what_nobody_declares_leaves_no_trace(self, world: World) -> None:
        """Fact: both record nobody for a scale of what nobody declares."""
        body = deployment()
        first = world.apply(body, OURS).must()
        live = world.merge(body, {"spec": {"replicas": 5}}, "kubectl", "scale").must()

        assert [h.manager for h in all_holders(live)] == [h.manager for h in all_holders(first)]
        assert judge(body, live, OURS).settled

    def test_an_atomic_field_is_contested_whole(self, world: World) -> None:
        """Fact: both contest an atomic field as a whole."""
        ports = [{"port": 80, "protocol": "TCP"}]
        spec = {"ports": ports, "selector": {"app": "a", "tier": "x"}}
        body = named("v1", "Service", {"spec": spec})
        live = world.apply(body, OTHER).must()
        want = {**body, "spec": {**spec, "selector": {"app": "b"}}}

        assert [leaf.path for leaf in judge(want, live, OURS).contested] == [".spec.selector"]
        assert world.apply(want, OURS).conflicts == (".spec.selector",)

    def test_an_empty_map_of_the_creator_contests_nothing_inside(self, world: World) -> None:
        """Fact: both book an empty map of a create, and contest nothing inside it."""
        body = deployment()
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
        live = world.create(body, OTHER).must()
        want = {**body, "spec": deployment(replicas=1)["spec"]}
        main = want["spec"]["template"]["spec"]["containers"][0]
        main["resources"] = {"limits": {"cpu": "1"}}

        assert judge(want, live, OURS).contested == ()
        assert world.apply(want, OURS).code == 200

    def test_an_update_takes_the_field_and_says_so(self, world: World) -> None:
        """Fact: both let an update take a field, and record who."""
        body = config_map(a="1", b="1")
        world.apply(body, OURS)
        live = world.merge(body, {"data": {"a": "2"}}, "kubectl-edit").must()

        (leaf,) = judge(body, live, OURS).leaves
        assert (leaf.path, leaf.why, leaf.want, leaf.live) == (".data.a", "lost", "1", "2")
        assert (leaf.holders[0].manager, leaf.holders[0].operation) == ("kubectl-edit", "Update")

    def test_an_update_that_brings_entries_sets_them(self, world: World) -> None:
        """Fact: both take who holds what from an update, but for what it changes itself."""
        body = config_map(a="1", b="1")
        former = world.apply(body, OURS).must()["metadata"]["managedFields"]
        live = world.merge(body, {"data": {"a": "2", "b": "2"}}, "kubectl-edit").must()
        live["data"]["a"] = "1"

        live = world.put(with_meta(live, managedFields=former), "kubectl-edit").must()
        assert entry(live, OURS) == {"f:data": {"f:b": {}}}
        live = world.put(with_meta(live, managedFields=former), "kubectl-edit").must()
        assert entry(live, OURS) == {"f:data": {"f:a": {}, "f:b": {}}}
        assert len(live["metadata"]["managedFields"]) == 1

    def test_a_removed_field_belongs_to_nobody(self, world: World) -> None:
        """Fact: both record nobody for a field that an update removed."""
        body = config_map(a="1", b="1")
        world.apply(body, OURS)
        live = world.merge(body, {"data": {"a": None}}, "kubectl-edit").must()

        (leaf,) = judge(body, live, OURS).leaves
        assert (leaf.why, leaf.holders, leaf.live) == ("lost", (), None)
        assert world.apply(body, OURS).must()["data"] == {"a": "1", "b": "1"}

    def test_a_forced_apply_takes_only_what_it_declares(self, world: World) -> None:
        """Fact: both leave to its holder what a forced apply does not declare."""
        body = config_map(a="1", b="1")
        world.apply(body, OTHER)
        live = world.apply({**body, "data": {"a": "2"}}, OURS, force=True).must()

        assert entry(live, OTHER) == {"f:data": {"f:b": {}}}
        assert entry(live, OURS) == {"f:data": {"f:a": {}}}

    def test_after_a_reset_everything_conflicts_with_before_first_apply(self, world: World) -> None:
        """Fact: both book all to before-first-apply after managed fields were emptied."""
        body = config_map(a="1")
        world.apply(body, OURS).must()
        live = world.merge(body, {"metadata": {"managedFields": [{}]}}, OTHER).must()
        want = {**body, "data": {"a": "2"}}

        contested = judge(want, live, OURS).contested
        assert [(leaf.path, leaf.holders[0].manager) for leaf in contested] == [
            (".data.a", "before-first-apply")
        ]
        assert world.apply(want, OURS).conflicts == (".data.a",)


class TestRecall:
    """The residual of our apply's answer stays the same while a further apply would do nothing."""

    def test_it_outlives_what_others_write_beside_us(self, world: World) -> None:
        """Fact: both respell and fill in the same, whatever others write beside it."""
        body = deployment(paused=False)
        main = body["spec"]["template"]["spec"]["containers"][0]
        main["imagePullPolicy"] = ""  # the server's default takes its place
        main["env"] = [
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "EMPTY", "value": ""},
        ]
        answer = world.apply(body, OURS).must()
        world.merge(body, {"metadata": {"labels": {"foreign": "1"}}}, OTHER)
        progress = {"status": {"observedGeneration": 1, "replicas": 1}}
        world.merge(body, progress, "kube-controller-manager", "status")
        later = world.apply(
            status(body, {"updatedReplicas": 1}), OTHER, subresource="status"
        ).must()

        assert residual(judge(body, answer, OURS)) != ""
        assert residual(judge(body, later, OURS)) == residual(judge(body, answer, OURS))
        assert visible(world.apply(body, OURS).must()) == visible(later)

    def test_it_ends_when_another_takes_hold_of_a_respelled_leaf(self, world: World) -> None:
        """Fact: both compare spellings, so that the next apply would meet a conflict."""
        body = deployment(paused=False)
        main = body["spec"]["template"]["spec"]["containers"][0]
        main["env"] = [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
        answer = world.apply(body, OURS).must()
        later = world.apply({**answer, "metadata": body["metadata"]}, OTHER).must()

        assert residual(judge(body, later, OURS)) != residual(judge(body, answer, OURS))
        assert world.apply(body, OURS).error == "Conflict"
        assert judge(body, later, OURS).contested != ()
