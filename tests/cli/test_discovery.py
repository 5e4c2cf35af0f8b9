"""The kind that a word stands for, out of what a server says it serves."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from hedgerow.cli.discovery import FoundKind, find, served, spelled
from hedgerow.kube.errors import (
    Forbidden,
    Garbled,
    KubeError,
    Missing,
    Unauthenticated,
    Unavailable,
)

VERBS = ["get", "list", "patch"]


def kind(plural: str, name: str, *short: str, **more: Any) -> dict[str, Any]:
    entry = {"name": plural, "singularName": name.lower(), "kind": name, "namespaced": True}
    return {**entry, "shortNames": list(short), "verbs": VERBS, **more}


def group(name: str, *versions: str, preferred: str = "") -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}"} for version in versions]
    first = f"{name}/{preferred or versions[0]}"
    return {"name": name, "versions": listed, "preferredVersion": {"groupVersion": first}}


SERVED: dict[str, Any] = {
    "/api": {"versions": ["v1"]},
    "/apis": {
        "groups": [
            group("apps", "v1"),
            group("events.k8s.io", "v1"),
            group("autoscaling", "v1", "v2", preferred="v2"),
            group("big.example", "v1beta1"),
        ]
    },
    "/api/v1": {
        "resources": [
            kind("pods", "Pod", "po"),
            kind("pods/status", "Pod"),
            kind("events", "Event", "ev"),
            kind("namespaces", "Namespace", "ns", namespaced=False),
            kind("bindings", "Binding", verbs=["create"]),
        ]
    },
    "/apis/apps/v1": {"resources": [kind("deployments", "Deployment", "deploy")]},
    "/apis/events.k8s.io/v1": {"resources": [kind("events", "Event", "ev")]},
    "/apis/autoscaling/v1": {"resources": [kind("scalers", "Scaler"), kind("olds", "Old")]},
    "/apis/autoscaling/v2": {"resources": [kind("scalers", "Scaler")]},
    "/apis/big.example/v1beta1": {"resources": [kind("ev", "Ev"), kind("pos", "Po")]},
}


class Served:
    """Answers of discovery alone, some of which are errors: a word depends on nothing else."""

    def __init__(self, **failing: KubeError) -> None:
        self.answers: dict[str, Any] = {**SERVED, **failing}
        self.asked: list[str] = []

    async def get(self, path: str, **_: Any) -> Any:
        self.asked.append(path)
        await anyio.lowlevel.checkpoint()
        answer = self.answers[path]
        if isinstance(answer, KubeError):
            raise answer
        return answer


async def resolved(word: str, cluster: Any = None) -> FoundKind:
    return await find(cluster or Served(), word)


@pytest.mark.anyio
class TestFind:
    @pytest.mark.parametrize(
        ("word", "expected"),
        [
            ("pods", "pods.v1."),
            ("pod", "pods.v1."),
            ("Pod", "pods.v1."),
            ("PODS", "pods.v1."),
            ("pods.v1.", "pods.v1."),
            ("pods.v1", "pods.v1."),
            ("deploy", "deployments.v1.apps"),
            ("deploy.apps", "deployments.v1.apps"),
            ("Deployment.v1.apps", "deployments.v1.apps"),
            ("scaler", "scalers.v2.autoscaling"),
            ("scaler.v1.autoscaling", "scalers.v1.autoscaling"),
            ("olds", "olds.v1.autoscaling"),
            ("events", "events.v1."),
            ("events.events.k8s.io", "events.v1.events.k8s.io"),
            ("pos", "pos.v1beta1.big.example"),
        ],
    )
    async def test_a_word_is_taken_as_kubectl_takes_it(self, word: str, expected: str) -> None:
        assert spelled((await resolved(word)).api) == expected

    async def test_a_real_name_goes_before_a_short_one(self) -> None:
        found = await resolved("ev")

        assert spelled(found.api) == "ev.v1beta1.big.example"
        assert [spelled(api) for api in found.others] == ["events.v1.", "events.v1.events.k8s.io"]

    async def test_other_groups_are_told_and_other_versions_are_not(self) -> None:
        found = await resolved("events")

        assert [spelled(api) for api in found.others] == ["events.v1.events.k8s.io"]
        assert (await resolved("scalers")).others == ()

    async def test_the_scope_is_what_discovery_says(self) -> None:
        assert (await resolved("pods")).api.namespaced
        assert not (await resolved("ns")).api.namespaced

    async def test_a_named_group_is_the_only_one_asked(self) -> None:
        cluster = Served()
        await resolved("deployments.apps", cluster)

        assert cluster.asked == ["/api", "/apis", "/apis/apps/v1"]

    @pytest.mark.parametrize(
        "word", ["nothing", "bindings", "pods/status", "pods.apps", "pods.v2."]
    )
    async def test_what_is_not_served_or_cannot_be_read_is_missing(self, word: str) -> None:
        with pytest.raises(Missing, match=f'the server serves no kind "{word}"'):
            await resolved(word)

    async def test_a_slip_of_the_pen_gets_a_hint(self) -> None:
        with pytest.raises(Missing, match=r'no kind "deplyments" \(did you mean deployments\?\)'):
            await resolved("deplyments")

    @pytest.mark.parametrize(
        "error", [Unavailable("down"), Forbidden("no"), Missing("?"), Garbled("x")]
    )
    async def test_a_group_that_does_not_answer_is_left_out(self, error: KubeError) -> None:
        path = "/apis/big.example/v1beta1"
        found = await resolved("pods", Served(**{path: error}))

        assert found.failed == ("big.example/v1beta1",)
        with pytest.raises(Missing, match=r'"pos" \(big.example/v1beta1 gave no answer\)'):
            await resolved("pos", Served(**{path: error}))

    async def test_what_concerns_the_whole_server_is_raised(self) -> None:
        with pytest.RaisesGroup(Unauthenticated):
            await resolved("pods", Served(**{"/api/v1": Unauthenticated("who?")}))


@pytest.mark.anyio
class TestServed:
    async def test_each_kind_that_may_be_listed_and_patched_once_and_no_events(self) -> None:
        failing: dict[str, KubeError] = {"/apis/big.example/v1beta1": Unavailable("down", code=503)}
        cluster: Any = Served(**failing)
        cluster.answers["/apis/apps/v1"] = {
            "resources": [kind("deployments", "Deployment"), kind("odds", "Odd", verbs=["list"])]
        }

        found = await served(cluster)

        assert [spelled(api) for api in found.kinds] == [
            "pods.v1.", "namespaces.v1.", "deployments.v1.apps", "scalers.v2.autoscaling",
            "olds.v1.autoscaling",
        ]  # fmt: skip
        assert found.failed == ("big.example/v1beta1",)
        assert found.versions == {
            "v1", "apps/v1", "events.k8s.io/v1", "autoscaling/v1", "autoscaling/v2",
            "big.example/v1beta1",
        }  # fmt: skip
