"""The test kit, against a real API server: operators of others as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import library.greeter
from hedgerow_schemas import crd
from hedgerow_testing import Api, eventually, holders, target
from library.greeter import Greeting
from support.programs.kopf import kopf_python
from testing import guide

pytestmark = pytest.mark.cluster

GROUP = "greeter.example.com/v1"
GREETER = Path(str(library.greeter.__file__))
OF_KOPF = Path(__file__).parents[1] / "testing/greeter_of_kopf.py"
PORTLESS = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")


@pytest.fixture(scope="session")
def python_with_kopf() -> Path:
    try:
        return kopf_python()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"kopf cannot be installed here: {error}")


@pytest.fixture(scope="module")
def _greetings(kube: Api) -> Iterator[None]:
    """Have Greetings served, as `greeter.py install` does."""
    document = json.loads((files("hedgerow_schemas") / "openapi.json").read_text("utf-8"))
    definition = crd.render(Greeting, document, describe=False)
    kube.apply(definition, "test").must()
    kube.served(GROUP)
    yield
    kube.delete(definition)
    eventually(lambda: kube.raw("GET", f"/apis/{GROUP}/greetings").status == 404, 180)


@pytest.fixture
def hello(namespace: str, _greetings: None) -> dict[str, Any]:
    return {**target(GROUP, "Greeting", "hello", namespace), "spec": {"name": "world"}}


class TestAnOperatorOfKopf:
    def test_what_it_made_goes_over_to_one_of_hedgerow_without_a_conflict(
        self, python_with_kopf, sandbox, operator_process, kube, hello, namespace, assert_settled
    ):
        """Fact: which entries an operator of kopf leaves."""
        command = [python_with_kopf, "-m", "kopf", "run", "--standalone", "-A", OF_KOPF]
        kopf = operator_process(command)
        kube.apply(hello, "user").must()
        child = target("v1", "ConfigMap", "hello", namespace)
        eventually(lambda: kube.get(child).ok, what="the greeting")
        kopf.stop()

        command = [sys.executable, GREETER, "run", "-n", namespace, *PORTLESS]
        greeter = operator_process(command, until="caches are filled")
        eventually(lambda: kube.get(hello).must().get("status", {}).get("text"), what="the status")
        assert_settled(user=greeter.user)

        text = holders(kube.get(child).must(), "data", "text")
        assert text == ["OpenAPI-Generator", "greeter-greeter"]
        status = kube.get(hello).must()["status"]
        assert [c["status"] for c in status["conditions"] if c["type"] == "Ready"] == ["True"]
        assert "contested" not in status

        words = [
            "adopt",
            "configmap/hello",
            "--from",
            "OpenAPI-Generator",
            "-n",
            namespace,
            "--yes",
        ]
        adopt = [sys.executable, GREETER, *words, "--kubeconfig", sandbox.kubeconfig]
        subprocess.run(adopt, check=True)
        text = holders(kube.get(child).must(), "data", "text")
        assert text == ["greeter-greeter"]


class TestAProcess:
    def test_is_told_by_its_user_and_may_do_no_more_than_its_rules_say(
        self, operator_process, kube, namespace, audit_log
    ):
        """Fact: RBAC and the audit log know a process by its user."""
        mark = audit_log.mark()
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
        program = (
            "import os, sys; from hedgerow_testing import Api\n"
            "api = Api(os.environ['KUBECONFIG'])\n"
            "for kind in ('configmaps', 'secrets'):\n"
            "    print(kind, api.raw('GET', f'/api/v1/{kind}').status, flush=True)\n"
            "print('done', flush=True); import time; time.sleep(600)"
        )
        own = operator_process(
            [sys.executable, "-c", program], until="done\n", rules=rules, user="reader"
        )

        assert own.output.split() == ["configmaps", "200", "secrets", "403", "done"]
        assert [e["objectRef"]["resource"] for e in audit_log.since(mark, user="reader")] == [
            "configmaps", "secrets"
        ]  # fmt: skip
        assert len(audit_log.refused(mark, user="reader")) == 1
        assert own.running
        own.kill()
        assert not own.running


class TestSomebodyElse:
    def test_applies_edits_scales_removes_and_deletes(self, kube, namespace, somebody_else):
        """Fact: the server books each way to write of somebody else."""
        pod = {"containers": [{"name": "c", "image": "i"}]}
        deployment = target("apps/v1", "Deployment", "web", namespace)
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        kube.apply({**deployment, "spec": spec}, "author").must()

        helm = somebody_else.called("helm")
        helm.apply({**deployment, "spec": {"minReadySeconds": 3}})
        live = somebody_else.scale(deployment, 4)
        assert live["spec"]["replicas"] == 4
        assert holders(live, "spec", "replicas") == ["somebody-else"]
        assert helm.must_hold(deployment, "spec", "minReadySeconds") == 3
        edited = somebody_else.edit(deployment, {"spec": {"paused": True}})
        assert edited["spec"]["paused"]
        assert "paused" not in somebody_else.remove(deployment, "spec", "paused")["spec"]
        assert "minReadySeconds" not in helm.release(deployment)["spec"]
        with pytest.raises(AssertionError, match="nobody holds it"):
            helm.must_hold(deployment, "spec", "minReadySeconds")
        somebody_else.delete(deployment)
        assert kube.get(deployment).status == 404


class TestANamespace:
    def test_is_gone_with_all_that_is_in_it(self, kube, sandbox):
        """Fact: a namespace ends only when its finalizer is taken off."""
        from hedgerow_testing.sandboxes import name_for, remove_namespace

        name = kube.namespace(name_for("What [a-test] is called!"))
        assert name.startswith("what--a-test--is-called-")
        held = target("v1", "ConfigMap", "held", name)
        held["metadata"]["finalizers"] = ["example.com/held"]
        kube.apply(held, "user").must()

        remove_namespace(kube, name, collects=False)

        assert kube.get(target("v1", "Namespace", name)).status == 404
        assert kube.get(held).status == 404


def test_the_guides_blocks_run_in_a_sandbox_of_their_own(sandbox, python_with_kopf, tmp_path):
    """Fact: what the guide's tests find on a real server, of kopf too.

    As the reader's project does: one operator leaves what is not its own, that of kopf not.
    """
    given = {"PYTHON_WITH_KOPF": str(python_with_kopf)}
    blocks = ("test_sandbox.py", "test_of_kopf.py")

    assert "2 passed" in guide.run_pytest(guide.laid_out(tmp_path), *blocks, **given)
