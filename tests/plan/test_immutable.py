from __future__ import annotations

import pytest

from hedgerow.plan.conditions import LONGEST_MESSAGE
from hedgerow.plan.immutable import degraded, fixed
from hedgerow_schemas.builtin import Deployment, Service

COST = "costs something"
PATH = ("spec", "clusterIP")


def service(**spec):
    return Service({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})


class TestFixed:
    def test_a_child_that_has_another_value_is_told_of_with_the_way_to_have_it_otherwise(self):
        (one,) = fixed(service(clusterIP="10.96.0.7"), PATH, "None", COST)

        assert str(one) == (
            "Service/web: .spec.clusterIP is 10.96.0.7 and cannot be changed; wanted is None;"
            " `kubectl delete service web -n shop` recreates it, which costs something"
        )

    @pytest.mark.parametrize(
        "child",
        [None, service(), service(clusterIP=""), service(clusterIP="None")],
        ids=["no child", "no value", "an empty value", "the value that is wanted"],
    )
    def test_otherwise_there_is_nothing_to_tell(self, child):
        assert fixed(child, PATH, "None", COST) == ()

    def test_what_is_no_text_is_written_as_json(self):
        live = Deployment({"metadata": {}, "spec": {"selector": {"matchLabels": {"b": 1, "a": 2}}}})

        (one,) = fixed(live, ("spec", "selector"), {"matchLabels": {}}, COST)

        assert 'is {"matchLabels": {"a": 2, "b": 1}} and cannot be changed' in str(one)
        assert 'wanted is {"matchLabels": {}};' in str(one)


class TestDegraded:
    def test_there_is_no_condition_when_nothing_is_fixed(self):
        assert degraded(()) == ()

    def test_one_condition_tells_of_all(self):
        one, two = (fixed(service(clusterIP=ip), PATH, "None", COST) for ip in ("::1", "::2"))

        (condition,) = degraded((*one, *two))

        assert (condition.type, condition.status, condition.reason) == (
            "Degraded",
            "True",
            "Immutable",
        )
        assert condition.message == f"{one[0]}; {two[0]}"

    def test_a_message_is_no_longer_than_a_condition_may_have_it(self):
        (condition,) = degraded(fixed(service(clusterIP="1" * 9999), PATH, "None", COST))

        assert len(condition.message) == LONGEST_MESSAGE
