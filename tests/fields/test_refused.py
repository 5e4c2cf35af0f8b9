"""Which declared fields a refusal is about, and what is left without them."""

from __future__ import annotations

import pytest

from hedgerow.fields.refused import MOST_CAUSES, as_held, refused_places
from plan.made import MANAGER, live

WANT = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "demo", "labels": {"a": "b"}},
    "spec": {
        "selector": {"app": "x"},
        "ports": [{"port": 1, "protocol": "TCP"}, {"port": 2, "protocol": "TCP"}],
        "type": "ClusterIP",
    },
}


@pytest.mark.parametrize(
    ("cause", "place"),
    [
        ("spec.ports[1].name", ("spec", "ports")),
        ("spec.ports", ("spec", "ports")),
        ("spec.type", ("spec", "type")),
        ("spec.selector.app", ("spec", "selector", "app")),
        ("spec.selector.other", ("spec", "selector")),
        ("spec.clusterIP", ("spec",)),
        ("metadata.labels", None),
        ("status.replicas", None),
        ("data[password]", None),
        ("", None),
        ("<nil>", None),
        ("spec." + "x" * 2000, None),
    ],
)
def test_a_cause_is_about_what_is_declared_around_it(cause, place):
    assert refused_places(WANT, [cause]) == ((place,) if place else ())


def test_a_cause_may_have_a_name_of_the_servers_own():
    want = {"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}

    place = ("spec", "loadBalancerSourceRanges")
    assert refused_places(want, ["spec.LoadBalancerSourceRanges"]) == (place,)


def test_each_place_is_named_once_and_causes_are_bounded():
    causes = [f"spec.ports[{number}].name" for number in range(1000)]

    assert refused_places(WANT, causes) == (("spec", "ports"),)
    assert refused_places(WANT, [*causes[:MOST_CAUSES], "spec.type"]) == (("spec", "ports"),)


@pytest.mark.parametrize(
    ("places", "spec"),
    [
        (
            [("spec", "ports")],
            {**WANT["spec"], "ports": [{"port": 1, "protocol": "TCP"}], "selector": {"app": "new"}},
        ),
        (
            [("spec", "ports"), ("spec", "selector", "app")],
            {**WANT["spec"], "ports": [{"port": 1, "protocol": "TCP"}]},
        ),
        (
            [("spec", "type")],
            {"ports": WANT["spec"]["ports"], "selector": {"app": "new"}},
        ),
    ],
    ids=["a list", "within a map", "not held"],
)
def test_what_is_held_there_takes_its_place(places, spec):
    held = {**WANT, "spec": {"selector": {"app": "x"}, "ports": [{"port": 1, "protocol": "TCP"}]}}
    want = {**WANT, "spec": {**WANT["spec"], "selector": {"app": "new"}}}

    assert as_held(want, live(held), MANAGER, places)["spec"] == spec
