"""The order of a plan's writes, and what stands for their content and their end."""

from __future__ import annotations

import pytest

from hedgerow.fields import ownership
from hedgerow.objects import ObjectRef
from hedgerow.plan.writes import Deletion, Write, checksum, content, next_steps, settles
from hedgerow_schemas.builtin import Deployment, PodDisruptionBudget, Service
from plan.made import MANAGER, live, taken
from plan.one_child import WANT

KINDS = {kind.api.kind: kind.api for kind in (Deployment, Service, PodDisruptionBudget)}


def write(kind: str, name: str = "demo", *after: str) -> Write:
    return Write(ObjectRef(KINDS[kind], "ns", name), {}, create=True, after=frozenset(after))


def deletion(name: str) -> Deletion:
    return Deletion(ObjectRef(Deployment.api, "ns", name, "uid"), "1")


class TestNext:
    def test_nothing_is_made_of_nothing(self):
        assert next_steps(()) == ()

    def test_writes_that_wait_for_nothing_are_made_as_they_are_declared(self):
        writes = (write("Deployment"), write("Service"), write("PodDisruptionBudget"))

        assert next_steps(writes) == writes

    def test_a_write_waits_for_those_to_the_kinds_that_it_comes_after(self):
        blue, green = write("Deployment", "blue"), write("Deployment", "green")
        service = write("Service", "demo", "Deployment")

        assert next_steps((service, blue, green)) == (blue, green)
        assert next_steps((service,)) == (service,)

    def test_a_kind_does_not_wait_for_itself(self):
        both = (write("Deployment", "a", "Deployment"), write("Deployment", "b", "Deployment"))

        assert next_steps(both) == both

    def test_of_writes_that_wait_for_each_other_the_first_is_made(self):
        one, two = write("Deployment", "a", "Service"), write("Service", "b", "Deployment")

        assert next_steps((one, two)) == (one,)

    def test_deletions_wait_for_all_writes(self):
        gone = (deletion("a"), deletion("b"))

        assert next_steps((*gone, write("Service"))) == (write("Service"),)
        assert next_steps(gone) == gone

    def test_an_object_gets_one_request_at_a_time(self):
        first, second = write("Service"), write("Service", "demo", "Deployment")

        assert next_steps((first, second)) == (first,)


class TestSettles:
    """Whether a write's answer shows that nothing is left to do."""

    def made(self, **how: bool) -> Write:
        return Write(ObjectRef(Service.api, "ns", "settings"), WANT, create=True, **how)

    def test_an_answer_that_is_as_declared_settles(self):
        answer = live(WANT)

        assert settles(self.made(), answer, ownership.judge(WANT, answer, MANAGER))

    def test_so_does_one_that_the_server_spells_otherwise(self):
        answer = live(WANT)
        answer["data"] = {**answer["data"], "a": "9"}

        assert settles(self.made(), answer, ownership.judge(WANT, answer, MANAGER))

    def test_an_answer_of_which_another_holds_a_part_does_not(self):
        answer = taken(WANT, ("data", "a"), "9")

        assert not settles(self.made(), answer, ownership.judge(WANT, answer, MANAGER))

    @pytest.mark.parametrize("how", [{"is_complete": False}, {"foreign": True}, {"once": True}])
    def test_what_is_not_a_whole_declared_child_never_does(self, how):
        answer = live(WANT)

        assert not settles(self.made(**how), answer, ownership.judge(WANT, answer, MANAGER))


class TestChecksum:
    def test_equal_values_have_equal_ones_and_others_do_not(self):
        assert checksum({"a": [1, None]}) == checksum({"a": [1, None]})
        assert checksum({"a": 1}) != checksum({"a": True})
        assert checksum("a", "b") != checksum("ab")


class TestContent:
    def test_the_status_is_left_out_and_what_changes_along_with_it(self):
        before = live(WANT)
        after = {**before, "status": {"replicas": 3}}
        status = {"manager": "kcm", "operation": "Update", "subresource": "status"}
        fields = [*before["metadata"]["managedFields"], status]
        after["metadata"] = {
            **before["metadata"], "resourceVersion": "99", "managedFields": fields,
        }  # fmt: skip

        assert content(after) == content(before)

    def test_everything_else_counts(self):
        before = live(WANT)
        labelled = {**before, "metadata": {**before["metadata"], "labels": {"a": "b"}}}

        assert content(labelled) != content(before)
        assert content({**before, "data": {}}) != content(before)
