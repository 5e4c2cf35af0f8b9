"""Apply facts: what hedgerow leans on when it creates and deletes, on both servers."""

from __future__ import annotations

import pytest

from hedgerow.fields.managed_fields import entry
from model.programs import World
from support.cluster.facts import (
    ENDING,
    NOBODY,
    OTHER,
    OURS,
    blue,
    config_map,
    deployment,
    identity,
    open_world,
    status,
    with_meta,
)  # fmt: skip

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]


@pytest.fixture(params=["model", "real"], scope="module")
def world(request: pytest.FixtureRequest) -> World:
    return open_world(request)


class TestCreating:
    def test_a_create_only_apply_creates_what_is_missing(self, world: World) -> None:
        """Fact: both answer 201 to an apply with version 1 where nothing is."""
        assert world.apply(with_meta(config_map(), resourceVersion="1"), OURS).code == 201

    def test_a_create_only_apply_never_touches_what_is_there(self, world: World) -> None:
        """Fact: both answer 409 to an apply with version 1 where something is."""
        body = config_map(a="1")
        world.create(body, OTHER)

        answer = world.apply(with_meta(body, resourceVersion="1"), OURS)

        assert (answer.code, answer.error) == (409, "Stale")

    def test_without_it_an_apply_gets_hold_of_a_foreign_object(self, world: World) -> None:
        """Fact: both let an apply join an object that another one made."""
        body = config_map(a="1")
        world.create(body, OTHER)

        live = world.apply({**body, "data": {"b": "1"}}, OURS).must()

        assert live["data"] == {"a": "1", "b": "1"}
        assert entry(live, OURS) == {"f:data": {"f:b": {}}}

    def test_an_apply_with_a_uid_creates_nothing(self, world: World) -> None:
        """Fact: both refuse to create an object whose uid is given."""
        answer = world.apply(with_meta(config_map(), uid=NOBODY), OURS)

        assert (answer.code, answer.error) == (409, "Stale")

    def test_an_apply_with_another_uid_is_refused(self, world: World) -> None:
        """Fact: both answer 422 to an apply with another uid."""
        body = deployment()
        world.apply(body, OURS)

        answer = world.apply(with_meta(body, uid=NOBODY), OURS)

        assert (answer.code, answer.error) == (422, "Stale")

    def test_a_status_with_another_uid_is_refused_for_a_built_in_kind(self, world: World) -> None:
        """Fact: both compare the uid of a built-in kind's status."""
        body = deployment()
        world.apply(body, OURS)

        answer = world.apply(status(body, {"replicas": 1}, uid=NOBODY), OURS, subresource="status")

        assert (answer.code, answer.error) == (422, "Stale")

    def test_a_status_with_another_uid_is_taken_for_a_custom_resource(self, world: World) -> None:
        """Fact: of a custom resource's status both compare the version alone."""
        body = blue()
        version = world.apply(body, OURS).version
        world.apply({**body, "spec": {**body["spec"], "promotion": "WhenAvailable"}}, OURS)

        taken = world.apply(
            status(body, {"routeTo": "Blue"}, uid=NOBODY), OURS, subresource="status"
        )
        stale = world.apply(
            status(body, {"routeTo": "Green"}, resourceVersion=version), OURS, subresource="status"
        )

        assert taken.code == 200
        assert (stale.code, stale.error) == (409, "Stale")

    def test_the_status_of_what_is_missing_is_not_found(self, world: World) -> None:
        """Fact: both answer 404 to a status of what is missing."""
        answer = world.apply(status(blue(), {"routeTo": "Blue"}), OURS, subresource="status")

        assert (answer.code, answer.error) == (404, "Missing")

    def test_a_namespace_that_ends_takes_nothing_new(self, world: World) -> None:
        """Fact: both refuse new objects in a terminating namespace, and take changes."""
        world.open_namespace(ENDING)
        kept = with_meta(config_map(a="1"), namespace=ENDING)
        world.apply(kept, OURS)
        world.terminate(ENDING)

        answer = world.apply(with_meta(config_map(), namespace=ENDING), OURS)

        assert (answer.code, answer.error) == (403, "Forbidden.terminating")
        assert world.apply({**kept, "data": {"a": "2"}}, OURS).code == 200

    def test_a_namespace_that_is_missing_is_not_found(self, world: World) -> None:
        """Fact: both answer 404 for a namespace that is missing."""
        answer = world.apply(with_meta(config_map(), namespace="nowhere"), OURS)

        assert (answer.code, answer.error) == (404, "Missing")


class TestRefusing:
    def test_an_unknown_field_is_refused_for_good(self, world: World) -> None:
        """Fact: both answer 500 to an apply with a field that no schema has."""
        answer = world.apply({**config_map(), "dada": {}}, OURS)

        assert (answer.code, answer.error) == (500, "Invalid")

    def test_duplicate_list_keys_are_refused_for_good(self, world: World) -> None:
        """Fact: both answer 500 to an apply with the same list key twice."""
        body = deployment()
        body["spec"]["template"]["spec"]["containers"] *= 2

        answer = world.apply(body, OURS)

        assert (answer.code, answer.error) == (500, "Invalid")

    def test_managed_fields_in_the_body_are_refused(self, world: World) -> None:
        """Fact: both answer 400 to an apply that brings managed fields."""
        answer = world.apply(with_meta(config_map(), managedFields=[]), OURS)

        assert (answer.code, answer.error) == (400, "Invalid")

    def test_an_emptied_status_reads_as_null_and_is_refused(self, world: World) -> None:
        """Fact: both read an emptied status as null, which its schema refuses."""
        body = blue()
        world.apply(body, OURS)
        world.apply(status(body, {"routeTo": "Blue"}), OURS, subresource="status")

        emptied = world.apply(status(body, {}), OURS, subresource="status")
        identity_alone = world.apply(identity(body), OURS, subresource="status")

        assert (emptied.code, emptied.error) == (422, "Invalid")
        assert identity_alone.must().get("status", {}) == {}


class TestDeleting:
    def test_a_delete_wants_its_uid_and_version(self, world: World) -> None:
        """Fact: both delete only the object of the uid and version that are named."""
        body = config_map()
        version = world.apply(body, OURS).version
        live = world.apply(with_meta(body, labels={"a": "b"}), OURS).must()
        uid = live["metadata"]["uid"]

        assert world.delete(body, uid=NOBODY).error == "Stale"
        assert world.delete(body, uid=uid, version=version).error == "Stale"
        assert world.delete(body, uid=uid).code == 200
        assert world.delete(body, uid=uid).error == "Missing"

    def test_a_finalizer_holds_the_object_until_its_apply_leaves_it_out(self, world: World) -> None:
        """Fact: both remove a finalizer that its only holder no longer applies."""
        body = config_map()
        world.apply(with_meta(body, finalizers=["hedgerow.dev/one"]), OURS)
        world.apply(with_meta(body, finalizers=["other.dev/two"]), OTHER)
        world.delete(body)

        ours_gone = world.apply(body, OURS).must()
        added = world.apply(with_meta(body, finalizers=["hedgerow.dev/late"]), OURS)
        world.apply(body, OTHER)

        assert ours_gone["metadata"]["finalizers"] == ["other.dev/two"]
        assert (added.code, added.error) == (422, "Invalid")
        assert world.get(body) is None
