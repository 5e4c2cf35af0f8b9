"""`hedgerow tree`, as typed: what is asked of the cluster and what is printed of its answer."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from cli.grove import Grove
from cli.tree import kin
from hedgerow.cli import following
from hedgerow.cli.tree.look import REPLICA_SET
from hedgerow.cli.tree.view import TreesView
from hedgerow.kube import client
from hedgerow.kube.discovery import FoundKind
from hedgerow.kube.errors import Forbidden, Missing, Unavailable
from hedgerow.manifest import from_yaml
from hedgerow_schemas.builtin import Deployment, Pod, Secret, Service, StatefulSet
from support.operator.registered import ALL

Object = dict[str, Any]

SHORT = {
    "deploy": Deployment.api,
    "sts": StatefulSet.api,
    "svc": Service.api,
    "po": Pod.api,
    "ReplicaSet.apps": REPLICA_SET,
    "secret": Secret.api,
    "Deployment.apps": Deployment.api,
}
"""What the server says of short names of built-in kinds."""


@pytest.fixture
def cluster(monkeypatch) -> Grove:
    grove = Grove(kin.resource(), *kin.objects())

    @asynccontextmanager
    async def connect(**given: Any):
        grove.asked.append(given)
        yield grove

    async def find(_: Any, word: str) -> FoundKind:
        if word not in SHORT:
            raise Missing(f'the server serves no kind "{word}"', code=404)
        return FoundKind(SHORT[word])

    monkeypatch.setattr(client, "connect", connect)
    monkeypatch.setattr("hedgerow.cli.targets.find", find)
    monkeypatch.setattr(following, "GATHER", 0)
    monkeypatch.delenv("COLUMNS", raising=False)
    return grove


@pytest.fixture
def typed(cluster, typing):
    """Type `hedgerow tree …`; give the exit code, standard output and standard error."""
    return partial(typing, "tree")


def shown(told: tuple[int, str, str]) -> list[str]:
    """Return the objects that a tree shows, in their order."""
    assert (told[0], told[2]) == (0, "")
    return re.findall(r"[A-Z]\w+/[a-z0-9.-]+", told[1])


TREE = ["BlueGreen/demo", "Deployment/web", "ReplicaSet/web-1", "Pod/web-1-a", "Service/demo"]


LEFT_OUT = "1 kind is left out, which you may not read here:"


class TestAsked:
    @pytest.mark.parametrize(
        "word",
        [
            "demo", "bluegreen/demo", "BlueGreen/demo", "bg/demo", "bluegreens/demo",
            "bluegreens.app.demo.kakao.com/demo", "bluegreen.v1.app.demo.kakao.com/demo",
        ],
    )  # fmt: skip
    def test_a_name_is_enough_and_a_kind_is_spelled_as_for_kubectl(self, typed, word):
        assert shown(typed(word)) == TREE

    def test_without_a_name_all_of_ours_are_shown(self, typed, cluster):
        cluster.put(memcached("demo"))

        assert shown(typed()) == [*TREE, "Memcached/demo"]

    def test_only_what_can_be_in_the_tree_is_read(self, typed, cluster):
        typed("bg/demo")

        assert cluster.lists == [
            ("BlueGreen", "ns", "metadata.name=demo"),
            ("Deployment", "ns", ""),
            ("Job", "ns", ""),
            ("Pod", "ns", ""),
            ("ReplicaSet", "ns", ""),
            ("Service", "ns", ""),
        ]

    def test_flags_choose_cluster_and_namespace(self, typed, cluster):
        typed("bg/demo", "-n", "other", "--context", "there", "--kubeconfig", "file")

        assert cluster.lists[0] == ("BlueGreen", "other", "metadata.name=demo")
        assert cluster.asked[0]["context"] == "there"
        assert cluster.asked[0]["kubeconfig"] == "file"
        assert re.fullmatch(r"hedgerow/\d.*", cluster.asked[0]["user_agent"])

    def test_all_namespaces_are_shown_one_after_the_other(self, typed, cluster):
        cluster.put(memcached("cache", namespace="a-first"))

        code, out, _ = typed("-A")

        assert code == 0
        assert cluster.lists[0][1] == ""
        titles = re.findall(r"^Namespace (\S+)", out, re.MULTILINE)
        assert titles == ["a-first", "ns"]


FREE = {"name": "free", "namespace": "ns", "managedFields": [kin.entry("kubectl", "Apply")]}


class TestWords:
    @pytest.mark.parametrize("words", [("bg", "demo"), ("deploy", "web")])
    def test_kind_and_name_may_be_two_words(self, typed, words):
        _, out, err = typed(*words)

        assert (re.findall(r"[A-Z]\w+/[a-z0-9.-]+", out), err) == (TREE, "")

    @pytest.mark.parametrize("word", ["bg", "bluegreens", "BlueGreen"])
    def test_a_kind_alone_is_all_of_it(self, typed, cluster, word):
        assert shown(typed(word)) == TREE
        assert {kind for kind, _, _ in cluster.lists} & {"CronJob", "Memcached"} == set()

    @pytest.mark.parametrize("words", [("bg/demo", "x"), ("bg", "demo", "x")])
    def test_more_words_are_wrong_usage(self, typed, words):
        code, _, err = typed(*words)

        assert code == 2
        assert "is neither KIND/NAME nor KIND NAME" in err


class TestBelow:
    @pytest.mark.parametrize("word", ["deploy/web", "svc/demo", "po/web-1-a"])
    def test_an_object_below_leads_to_its_resource_and_is_marked(self, typed, word):
        ended, out, err = typed(word)

        assert (ended, err) == (0, "")
        assert re.findall(r"[A-Z]\w+/[a-z0-9.-]+", out) == TREE
        marked = [line for line in out.splitlines() if "←" in line]
        assert len(marked) == 1
        assert word.partition("/")[2] in marked[0]

    def test_in_json_too(self, typed):
        _, out, _ = typed("deploy/web", "-o", "json")

        [resource] = json.loads(out)["resources"]
        asked = {child["name"]: child.get("asked", False) for child in resource["children"]}
        assert asked == {"web": True, "demo": False}


class TestCopies:
    """Children of Namespaces, which the tree does not show."""

    def copy(self, *managers: str) -> Object:
        entries = [kin.entry(manager, "Apply") for manager in managers]
        meta = {"name": "app", "namespace": "ns", "managedFields": entries}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}

    def test_of_one_it_is_said_who_made_it(self, typed, cluster):
        cluster.put(self.copy("hedgerow-secretsync"))

        code, out, err = typed("secret/app")

        assert (code, out) == (1, "")
        assert "Secret/app is a child of its Namespace, made by hedgerow's secretsync" in err

    def test_one_that_the_operator_does_not_write_is_no_copy(self, typed, cluster):
        cluster.put(self.copy("kubectl"))

        assert "no resource of hedgerow controls Secret/app" in typed("secret/app")[2]


class TestWrongInput:
    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (("a/b/c",), 2, "'a/b/c' is neither a NAME nor KIND/NAME"),
            (("/demo",), 2, "'/demo' is neither"),
            (("bg/",), 2, "'bg/' is neither"),
            (("bg/..",), 2, "'bg/..' is neither"),
            (
                ("svc/free",),
                1,
                "no resource of hedgerow controls Service/free; its fields are",
            ),
            (("svc/none",), 1, "Service/none does not exist in namespace ns; name another"),
            (("svc/demo", "-A"), 2, "'svc' is no kind of hedgerow's: bluegreen, cronjob, guestb"),
            (("bg.apps/demo",), 1, 'the server serves no kind "bg.apps"'),
            (("deploy/none",), 1, "Deployment/none does not exist in namespace ns; name another"),
            (("sts/none",), 1, "StatefulSet/none does not exist in namespace ns; name another"),
            (("demo", "-A", "-n", "x"), 2, "--namespace and --all-namespaces exclude each other"),
            (("deploy/lost",), 1, "no resource of hedgerow controls Deployment/lost"),
            (("web",), 1, "Deployment/web exists, and hedgerow holds no field of it now"),
            (("none",), 1, "a resource named none does not exist in namespace ns; name another"),
            (("bg/none",), 1, "BlueGreen/none does not exist in namespace ns; name another"),
            (("bg/none", "-A"), 1, "BlueGreen/none does not exist\n"),
            (("bg/none", "-w"), 1, "BlueGreen/none does not exist"),
        ],
    )
    def test_it_is_one_line_and_an_exit_code(self, typed, cluster, words, code, said):
        cluster.put({**kin.SERVICE, "metadata": FREE})
        cluster.put(kin.owned(kin.DEPLOYMENT, "lost", "ReplicaSet gone"))
        ended, out, err = typed(*words)

        assert (ended, out) == (code, "")
        assert err.startswith("hedgerow: ")
        assert said in err
        assert err.count("\n") == 1

    def test_a_name_that_two_kinds_have_is_no_answer(self, typed, cluster):
        cluster.put(memcached("demo"))

        code, _, err = typed("demo")

        assert code == 2
        assert "'demo' could be any of bluegreen/demo and memcached/demo: say which" in err

    def test_nothing_at_all_is_said_and_is_no_failure(self, typed):
        assert typed("-n", "other") == (
            0,
            "",
            "hedgerow: there are no resources of hedgerow here\n",
        )


class TestRights:
    def test_what_may_not_be_read_is_said_and_left_out(self, typed, cluster):
        cluster.refusals["Pod"] = Forbidden("you may not", request="GET pods")

        code, out, err = typed("demo")

        assert (code, err) == (
            0,
            f"hedgerow: {LEFT_OUT} Pod; GET pods: you may not\n",
        )
        assert "Pod/" not in out
        assert "ReplicaSet/web-1" in out

    def test_a_kind_of_a_child_that_is_not_served_is_left_out_too(self, typed, cluster):
        cluster.refusals["Pod"] = Missing("no such kind")

        assert typed("demo")[2] == "hedgerow: Pod is left out: no such kind\n"

    def test_kinds_of_ours_that_are_not_installed_are_not_missed(self, typed, cluster):
        cluster.refusals["Memcached"] = cluster.refusals["CronJob"] = Missing("no such kind")

        assert shown(typed()) == TREE

    def test_kinds_of_ours_that_may_not_be_read_are_told(self, typed, cluster):
        cluster.refusals["Memcached"] = Forbidden("you may not")

        code, out, err = typed()

        assert (code, err) == (
            0,
            f"hedgerow: {LEFT_OUT} Memcached; you may not\n",
        )
        assert "BlueGreen/demo" in out

    def test_when_nothing_of_ours_is_served_it_fails(self, typed, cluster):
        error = Missing("no such kind")
        cluster.refusals |= {resource.api.kind: error for resource in ALL.resources}

        code, out, err = typed()

        assert (code, out) == (1, "")
        assert err.startswith(f"hedgerow: {error}; ")

    def test_a_kind_that_may_not_be_read_and_is_not_installed_is_not_missed(self, typed, cluster):
        cluster.refusals["Memcached"] = Forbidden("you may not")
        cluster.unserved.add("Memcached")

        assert shown(typed()) == TREE

    def test_who_may_read_nothing_is_told_that_nothing_is_installed(self, typed, cluster):
        names = {resource.api.kind for resource in ALL.resources}
        cluster.refusals |= dict.fromkeys(names, Forbidden("you may not"))
        cluster.unserved |= names

        code, out, err = typed()

        assert (code, out) == (1, "")
        assert err.startswith("hedgerow: BlueGreen is not installed here: run `hedgerow install`; ")

    def test_when_nothing_of_ours_may_be_read_the_kinds_are_counted(self, typed, cluster):
        names = sorted(resource.api.kind for resource in ALL.resources)
        kinds = f"{len(names)} kinds are"
        cluster.refusals |= dict.fromkeys(names, Forbidden("you may not"))

        code, out, err = typed()

        assert (code, out) == (0, "")
        said, counted = err.splitlines()
        assert said == (
            "hedgerow: there are no resources of hedgerow here of a kind that you may read"
        )
        left_out = LEFT_OUT.replace("1 kind is", kinds)
        assert counted == f"hedgerow: {left_out} {', '.join(names)}; you may not"
        found = json.loads(typed("-o", "json")[1])
        assert found["resources"] == []
        assert sorted(one["kind"] for one in found["unread"]) == names

    def test_nothing_is_followed_when_nothing_may_be_read(self, typed, cluster):
        names = [resource.api.kind for resource in ALL.resources]
        cluster.refusals |= dict.fromkeys(names, Forbidden("you may not"))

        code, out, err = typed("--watch")

        assert (code, out) == (1, "")
        assert err.startswith("hedgerow: you may not; ")

    @pytest.mark.parametrize("target", ["nonesuch", "memcached/nonesuch"])
    def test_what_was_asked_for_by_name_may_be_of_a_kind_that_may_not_be_read(
        self, typed, cluster, target
    ):
        cluster.refusals["Memcached"] = Forbidden("you may not")

        code, out, err = typed(target)

        assert (code, out) == (1, "")
        assert err.startswith("hedgerow: you may not; ")

    def test_other_errors_are_not_swallowed(self, typed, cluster):
        cluster.refusals["Pod"] = Unavailable("down")

        assert typed("demo")[:2] == (1, "")


class TestJson:
    def test_it_says_all_that_the_tree_says(self, typed, cluster):
        cluster.put(kin.resource(contested=[kin.contested("Deployment/web")]))

        code, out, err = typed("demo", "-o", "json")

        assert (code, err) == (0, "")
        found = json.loads(out)
        assert found["unread"] == []
        (resource,) = found["resources"]
        deployment, service = resource["children"]
        assert resource["conditions"] == [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Serving",
                "message": "all is well",
                "lastTransitionTime": kin.NOON,
            }
        ]
        assert service == {
            "apiVersion": "v1",
            "kind": "Service",
            "namespace": "ns",
            "name": "demo",
            "uid": "Service demo",
            "status": "Current",
            "readiness": "ClusterIP 10.0.0.1",
            "changed": {"manager": "hedgerow-bluegreen", "operation": "Apply", "time": kin.NOON},
        }
        assert deployment["contested"] == [
            {
                "path": ".spec.replicas",
                "manager": "kubectl",
                "operation": "Update",
                "subresource": "scale",
                "since": kin.NOON,
            }
        ]

    def test_what_is_past_is_there_and_marked(self, typed, cluster):
        cluster.put(kin.owned(kin.SET, "web-0", "Deployment web", spec={"replicas": 0}))

        found = json.loads(typed("demo", "-o", "json")[1])

        sets = found["resources"][0]["children"][0]["children"]
        assert [(each["name"], each.get("past", False)) for each in sets] == [
            ("web-0", True),
            ("web-1", False),
        ]

    def test_what_could_not_be_read_is_told_in_it(self, typed, cluster):
        cluster.refusals["Pod"] = Forbidden("you may not")
        cluster.put(kin.resource(contested=[kin.contested("Deployment/web", since="")]))

        code, out, err = typed("demo", "-o", "json")

        assert (code, err) == (0, "")
        found = json.loads(out)
        assert found["unread"] == [{"kind": "Pod", "why": "is left out: you may not read it here"}]
        assert "since" not in found["resources"][0]["children"][0]["contested"][0]


class TestYaml:
    def test_it_says_the_same(self, typed):
        code, out, err = typed("demo", "-o", "yaml")

        assert (code, err) == (0, "")
        assert out.startswith("resources:\n- apiVersion: ")
        assert from_yaml(out) == (json.loads(typed("demo", "-o", "json")[1]),)


class TestWatch:
    @pytest.fixture
    def watched(self, typed, cluster):
        """Type `hedgerow tree … -w`, do what the test wants meanwhile, and press Ctrl-C."""

        def run(meanwhile: Callable[[], Awaitable[None]], *words: str) -> tuple[int, str, str]:
            cluster.meanwhile = meanwhile
            return typed(*words, "-w")

        return run

    def test_piped_it_is_the_tree_and_then_a_line_for_each_change(self, watched, cluster):
        async def meanwhile() -> None:
            await cluster.mark("Pod")
            await cluster.tell(kin.pod("web-1-a", "ReplicaSet web-1", ready=False))
            await cluster.tell(kin.pod("web-1-b", "ReplicaSet web-1"))
            await cluster.tell(kin.pod("web-1-b", "ReplicaSet web-1"), "DELETED")
            await cluster.tell(kin.owned(kin.DEPLOYMENT, "stranger", "another"))

        code, out, err = watched(meanwhile, "demo")

        assert (code, err) == (130, "")
        tree, _, lines = out.partition("10.0.0.1")
        assert tree.startswith("Namespace ns  5 objects\n")
        assert [
            re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", "", x) for x in lines.split("\n")[1:]
        ] == [
            "ns Pod/web-1-a: Running, not ready (was Ready)",
            "ns Pod/web-1-b: new, Ready",
            "ns Pod/web-1-b: gone",
            "",
        ]

    def test_only_the_kinds_of_the_resource_are_watched(self, watched, cluster):
        async def meanwhile() -> None:
            await anyio.lowlevel.checkpoint()

        watched(meanwhile, "demo")

        assert sorted(cluster.watches) == [
            (kind, "ns")
            for kind in ("BlueGreen", "Deployment", "Job", "Pod", "ReplicaSet", "Service")
        ]

    def test_it_ends_well_when_nobody_reads_on(self, watched, cluster, monkeypatch):
        silenced: list[bool] = []
        monkeypatch.setattr("hedgerow.cli.exits.silence", lambda: silenced.append(True))

        def broken(*_: Any, **__: Any) -> None:
            raise BrokenPipeError

        async def meanwhile() -> None:
            monkeypatch.setattr(following, "echo", broken)
            await cluster.tell(kin.pod("web-1-a", "ReplicaSet web-1", ready=False))

        code, out, err = watched(meanwhile, "demo")

        assert (code, err) == (0, "")
        assert out.startswith("Namespace ns  5 objects\n")
        assert silenced == [True]

    def test_as_json_each_change_is_a_line(self, watched, cluster):
        async def meanwhile() -> None:
            await cluster.tell(kin.pod("web-1-a", "ReplicaSet web-1", ready=False))
            await cluster.tell(kin.owned(kin.DEPLOYMENT, "stranger", "another"))

        code, out, err = watched(meanwhile, "demo", "-o", "json")

        assert (code, err) == (130, "")
        pods = [
            json.loads(line)["resources"][0]["children"][0]["children"][0]["children"][0]
            for line in out.splitlines()
        ]
        assert [pod["readiness"] for pod in pods] == ["Ready", "Running, not ready"]

    def test_as_yaml_each_change_is_a_document(self, watched, cluster):
        async def meanwhile() -> None:
            await cluster.tell(kin.pod("web-1-a", "ReplicaSet web-1", ready=False))

        code, out, err = watched(meanwhile, "demo", "-o", "yaml")

        assert (code, err) == (130, "")
        assert out.startswith("---\nresources:\n")
        assert [len(one["resources"]) for one in from_yaml(out)] == [1, 1]

    def test_a_resource_that_goes_is_told_with_all_that_it_had(self, watched, cluster):
        async def meanwhile() -> None:
            await cluster.tell(kin.resource(), "DELETED")

        assert watched(meanwhile, "demo")[1].count(": gone\n") == 5

    def test_a_kind_that_may_not_be_followed_is_told_once(self, watched, cluster):
        cluster.refusals["Pod"] = Forbidden("you may not")

        async def meanwhile() -> None:
            await cluster.tell(kin.owned(kin.SERVICE, "more", "r"))

        code, out, err = watched(meanwhile, "demo")

        assert (code, err) == (
            130,
            f"hedgerow: {LEFT_OUT} Pod; you may not\n",
        )
        assert "Service/more: new, ClusterIP\n" in out

    def test_a_kind_that_is_followed_no_more_is_told_until_it_is_again(self, watched, cluster):
        async def meanwhile() -> None:
            await cluster.fail("Pod", Forbidden("you may no longer"))
            await cluster.tell(kin.owned(kin.SERVICE, "more", "r"))

        code, out, err = watched(meanwhile, "demo")

        assert (code, err) == (130, "hedgerow: Pod may be out of date: you may no longer\n")
        assert "Pod/web-1-a: gone" not in out

    def test_on_a_terminal_the_tree_is_drawn_again_in_place(self, watched, cluster, monkeypatch):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "80")
        cluster.refusals["Service"] = Forbidden("you may not")

        async def meanwhile() -> None:
            await cluster.tell(kin.pod("web-1-a", "ReplicaSet web-1", ready=False))

        code, out, err = watched(meanwhile, "demo")

        assert (code, err) == (130, "")
        up = "\x1b[1A\x1b[2K"
        first, *_, last = out.split(up)
        assert first.startswith("\x1b[?25l")
        assert "✓ Ready" in first.split("Running")[0]
        assert out.count("Namespace") > 1
        assert "~ Running, not ready" in out
        assert f"{LEFT_OUT} Service" in out
        assert last.endswith("\x1b[?25h")

    def test_a_terminal_that_can_only_append_gets_lines(self, watched, cluster, monkeypatch):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "dumb")

        async def meanwhile() -> None:
            await cluster.tell(kin.pod("web-1-a", "ReplicaSet web-1", ready=False))

        out = watched(meanwhile, "demo")[1]

        assert out.count("Namespace") == 1
        assert "\x1b" not in out

    def test_nothing_is_left_once_all_is_gone(self, watched, cluster, monkeypatch):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "xterm")

        async def meanwhile() -> None:
            await cluster.tell(kin.resource(), "DELETED")

        assert "nothing is left" in watched(meanwhile, "demo")[1]

    @pytest.mark.parametrize("ages", [True, False])
    def test_ages_are_drawn_anew_where_that_is_worth_it(self, watched, cluster, monkeypatch, ages):
        drawn: list[str] = []

        def changes(_: TreesView) -> list[str]:
            drawn.append("again")
            return []

        async def meanwhile() -> None:
            with anyio.move_on_after(30 if ages else 0.3):
                while len(drawn) < 10:
                    await anyio.lowlevel.checkpoint()

        monkeypatch.setattr(following, "TICK", 0)
        monkeypatch.setattr(TreesView, "ages", ages)
        monkeypatch.setattr(TreesView, "changes", changes)
        monkeypatch.setattr("cli.grove._seen", anyio.lowlevel.checkpoint)

        assert watched(meanwhile, "demo")[0] == 130
        assert (len(drawn) >= 10) is ages


def memcached(name: str, namespace: str = "ns") -> dict[str, Any]:
    found = kin.resource()
    meta = {"name": name, "namespace": namespace, "uid": f"Memcached {name}"}
    version = "memcached.cache.example.com/v1"
    return {**found, "apiVersion": version, "kind": "Memcached", "metadata": meta}
