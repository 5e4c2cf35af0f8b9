"""No command replaces client-side apply's copy of a manifest, whoever gets the fields."""

from __future__ import annotations

import pytest

from support.commands.gardens import CHILD, NAME, Garden

COPY = "kubectl.kubernetes.io/last-applied-configuration"
CLIENT_SIDE = "kubectl-client-side-apply"
TWO = "hedgerow-two-bluegreen"
TO = ("--to", "kubectl")


@pytest.fixture
def garden(garden: Garden) -> Garden:
    """A child that somebody applied on the client side, and fields that only hedgerow holds."""
    garden.declare(replicas=5)
    meta = {**garden.target["metadata"], "annotations": {COPY: "{}"}}
    garden.store.apply({**garden.target, "metadata": meta, "spec": {"paused": True}}, CLIENT_SIDE)
    live = garden.live
    for entry in live["metadata"]["managedFields"]:
        entry["operation"] = "Update" if entry["manager"] == CLIENT_SIDE else "Apply"
    garden.store.put(live)
    garden.also(TWO, minReadySeconds=7)
    return garden


@pytest.mark.parametrize(
    "words",
    [
        ("release", CHILD, "--unowned", "--field", "spec.progressDeadlineSeconds", *TO),
    ],
)
def test_what_would_be_applied_as_kubectl_is_refused(garden, typing, words):
    before = garden.live
    code, out, err = typing(*words)

    assert code == 1
    assert f"Deployment/{NAME} has client-side apply's copy of its manifest" in out + err
    assert (garden.live, garden.writes) == (before, [])


@pytest.mark.parametrize("is_new", [False, True], ids=["with managed fields", "without"])
@pytest.mark.parametrize("field", [(), ("--field", "spec.paused")])
def test_an_adoption_relabels_entries_instead(garden, typing, is_new, field):
    live = garden.live
    if is_new:
        live["metadata"]["managedFields"] = []
        garden.store.put(live)

    words = ("adopt", CHILD, "--from", CLIENT_SIDE, *TO, *field)
    assert "nothing was changed. --yes does it" in typing(*words)[1]
    assert typing(*words, "--yes")[0] == 0

    assert garden.held("paused") == {"kubectl"}
    assert [sent.manager for sent in garden.writes if sent.verb == "apply"] == (
        ["hedgerow-cli"] if is_new else []
    )
    assert garden.live["metadata"]["annotations"] == {COPY: "{}"}


def test_a_release_does_so_too(garden, typing):
    words = ("release", CHILD, "--field", "spec.replicas", *TO, "--yes")

    assert typing(*words)[0] == 0
    assert garden.held("replicas") == {"kubectl"}
    assert garden.live["metadata"]["annotations"] == {COPY: "{}"}
