"""`hedgerow release`, as typed on a real server where no operator runs."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from hedgerow_testing.api import Object
from support.programs.typed import Typing, body, typing

pytestmark = pytest.mark.cluster

YES = ("--yes",)


@pytest.fixture
def typed(sandbox, namespace, capsys) -> Typing:
    return typing(sandbox.kubeconfig, namespace, capsys)


@pytest.mark.oldest
class TestUnowned:
    """What nobody holds, of an object that is no child of anything."""

    PLACE = "spec.strategy.rollingUpdate"
    LABELS: ClassVar = {"a": "b"}

    def body(self, namespace: str, **spec: Any) -> Object:
        containers = [{"name": "c", "image": "example/echo:1"}]
        template = {"metadata": {"labels": self.LABELS}, "spec": {"containers": containers}}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"selector": {"matchLabels": self.LABELS}, "template": template, **spec},
        }

    def test_a_default_goes_with_the_next_apply_of_who_gets_it(self, api, namespace, typed):
        """Fact: the server refuses a change beside a default that nobody holds."""
        before = api.apply(self.body(namespace, strategy={"type": "RollingUpdate"}), "helm").must()
        recreate = self.body(namespace, strategy={"type": "Recreate"})
        assert [api.apply(recreate, "helm", force=f).status for f in (False, True)] == [422, 422]

        told = typed(
            "release", "--unowned", "deploy/web", "--field", self.PLACE, "--to", "helm", *YES
        )

        assert (told.code, told.err) == (0, "")
        assert "helm holds 1 field that nobody held, no value changed" in told.out
        taken = api.get(before).must()
        assert body(taken) == body(before)
        assert api.apply(recreate, "helm").must()["spec"]["strategy"] == {"type": "Recreate"}

    def test_a_default_comes_back_and_what_is_required_stays(self, api, namespace, typed):
        """Fact: which removed fields the server fills in again or refuses."""
        live = api.apply(self.body(namespace, strategy={"type": "RollingUpdate"}), "helm").must()

        told = typed("release", "--unowned", "deploy/web", "--field", self.PLACE, *YES)

        assert told.code == 1
        assert "the server has set .spec.strategy.rollingUpdate again, as a default" in told.err
        assert api.get(live).must()["spec"] == live["spec"]

        meta = {**live["metadata"], "managedFields": [self.entry(live)]}
        meta.pop("resourceVersion")
        api.put({**live, "metadata": meta}, "editor").must()
        told = typed("release", "--unowned", "deploy/web", "--field", "spec.selector", *YES)
        assert told.code == 3
        assert "the server refuses to remove them" in told.err
        assert api.get(live).must()["spec"] == live["spec"]

    def entry(self, live: Object) -> Object:
        """Return an entry with which somebody holds the template alone."""
        [entry] = [e for e in live["metadata"]["managedFields"] if e["manager"] == "helm"]
        spec = entry["fieldsV1"]["f:spec"]
        return {**entry, "fieldsV1": {"f:spec": {"f:template": spec["f:template"]}}}
