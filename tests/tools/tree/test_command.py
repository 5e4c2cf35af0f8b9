"""`hedgerow tree`, as typed: what is asked of the cluster and what is printed of its answer."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest
from rich.text import Text

from hedgerow.deploy.manifest import from_yaml
from hedgerow.kube import client
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_tools.render import following
from hedgerow_tools.tree.look import REPLICA_SET
from hedgerow_tools.tree.view import TreesView
from support.operator.registered import ALL
from support.server.apiserver import ApiServer, refusal
from support.server.connected import connect
from support.server.streams import line
from tools.tree import kin

Object = dict[str, Any]

OURS = sorted(resource.api.kind for resource in ALL.resources)
ABSENT = refusal(404, "NotFound", "no such kind")
FORBIDDEN = refusal(403, "Forbidden", "you may not")
DOWN = refusal(503, "ServiceUnavailable", "down")
TREE = ["BlueGreen/demo", "Deployment/web", "ReplicaSet/web-1", "Pod/web-1-a", "Service/demo"]
NO_PODS = [name for name in TREE if not name.startswith("Pod/")]
PODS = "GET /api/v1/namespaces/ns/pods"
MEMCACHEDS = "GET /apis/memcached.cache.example.com/v1/namespaces/ns/memcacheds"
LEFT_OUT = "1 kind is left out, which you may not read here:"
UNREADY = kin.pod("web-1-a", "ReplicaSet web-1", ready=False)
FREE = {"name": "free", "namespace": "ns", "managedFields": [kin.entry("kubectl", "Apply")]}


def memcached(name: str, namespace: str = "ns") -> Object:
    meta = {"name": name, "namespace": namespace, "uid": f"Memcached {name}"}
    version = "memcached.cache.example.com/v1"
    return {**kin.resource(), "apiVersion": version, "kind": "Memcached", "metadata": meta}


pytestmark = pytest.mark.usefixtures("cluster")
COMMAND = ("tree",)


@pytest.fixture
def cluster(monkeypatch) -> ApiServer:
    made = ApiServer(latency=0)
    made.store.serve(ServedKind(REPLICA_SET, {}))
    for obj in (kin.resource(), *kin.objects()):
        made.store.put(obj)
    monkeypatch.setattr(client, "connect", connect(made, "ns"))
    monkeypatch.setattr(following, "GATHER", 0)
    monkeypatch.delenv("COLUMNS", raising=False)
    return made


def objects(out: str) -> list[str]:
    """Return the objects that a tree shows, in their order."""
    return re.findall(r"[A-Z]\w+/[a-z0-9.-]+", out)


def listed(cluster: ApiServer) -> set[tuple[str, str, str]]:
    """Return kind, namespace and field selector of every list."""
    return {
        (one.api.kind, one.namespace, one.request.params.get("fieldSelector", ""))
        for one in cluster.exchanges
        if one.verb == "list"
    }


class TestAsked:
    @pytest.mark.parametrize(
        "words",
        [
            "demo", "bluegreen/demo", "BlueGreen/demo", "bg/demo", "bluegreens/demo",
            "bluegreens.app.demo.kakao.com/demo", "bluegreen.v1.app.demo.kakao.com/demo",
            "bg demo", "bg", "bluegreens", "BlueGreen", "",
        ],
    )  # fmt: skip
    def test_what_is_meant_is_spelled_as_for_kubectl(self, typed, words):
        code, out, err = typed(*words.split())

        assert (code, objects(out), err) == (0, TREE, "")

    def test_without_a_name_all_of_ours_are_shown(self, typed, cluster):
        cluster.store.put(memcached("demo"))

        assert objects(typed()[1]) == [*TREE, "Memcached/demo"]
        assert objects(typed("bg")[1]) == TREE

    def test_only_what_can_be_in_the_tree_is_read_where_the_flags_say(self, typed, cluster):
        cluster.store.put({**kin.resource(), "metadata": {"name": "demo", "namespace": "other"}})
        flags = ("-n", "other", "--context", "there", "--kubeconfig", "file")
        for where, words in (("ns", ()), ("other", flags)):
            cluster.exchanges.clear()
            typed("bg/demo", *words)

            below = ("Deployment", "Job", "Pod", "ReplicaSet", "Service")
            assert listed(cluster) == {
                ("BlueGreen", where, "metadata.name=demo"),
                *((kind, where, "") for kind in below),
            }
        assert (cluster.logins[1]["context"], cluster.logins[1]["kubeconfig"]) == ("there", "file")
        assert re.fullmatch(r"hedgerow/\d.*", cluster.logins[1]["user_agent"])

    def test_all_namespaces_are_shown_one_after_the_other(self, typed, cluster):
        cluster.store.put(memcached("cache", namespace="a-first"))
        code, out, _ = typed("-A")

        assert code == 0
        assert re.findall(r"^Namespace (\S+)", out, re.MULTILINE) == ["a-first", "ns"]

    @pytest.mark.parametrize("word", ["deploy/web", "deploy web", "svc/demo", "po/web-1-a"])
    def test_an_object_below_leads_to_its_resource_and_is_marked(self, typed, word):
        code, out, err = typed(*word.split())
        [marked] = [line for line in out.splitlines() if "←" in line]

        assert (code, objects(out), err) == (0, TREE, "")
        assert re.split("[ /]", word)[1] in marked


PLAIN = ("Deployment/plain", "ReplicaSet/plain-1", "Pod/plain-1-a")
BELOW_PLAIN = [
    kin.owned(kin.SET, "plain-1", "Deployment plain", spec={"replicas": 1}, status=kin.counts()),
    kin.pod("plain-1-a", "ReplicaSet plain-1"),
]


class TestForeign:
    """Objects that no resource of ours controls, where nothing of ours is installed."""

    @pytest.fixture(autouse=True)
    def foreign(self, cluster):
        plain = kin.owned(kin.DEPLOYMENT, "plain", "r", spec={"replicas": 1}, status=kin.counts())
        del plain["metadata"]["ownerReferences"]
        for obj in (plain, *BELOW_PLAIN, kin.owned(kin.DEPLOYMENT, "lost", "ReplicaSet gone")):
            cluster.store.put(obj)
        cluster.store.put({**kin.SERVICE, "metadata": {**FREE, "uid": "Service free"}})
        cluster.store.put(kin.owned(kin.CONFIG_MAP, "made", "Service free"))
        cluster.answers |= {f"list {kind}": ABSENT for kind in OURS}

    @pytest.mark.parametrize(
        ("words", "marked", "shown"),
        [
            ("deploy/plain", [], PLAIN),
            ("deploy plain -A", [], PLAIN),
            ("pod/plain-1-a", ["Pod/plain-1-a"], PLAIN),
            ("replicaset/plain-1", ["ReplicaSet/plain-1"], PLAIN),
            ("deploy/lost", [], ("Deployment/lost",)),
            ("svc/free", [], ("Service/free", "ConfigMap/made")),
            ("configmap/made", ["ConfigMap/made"], ("Service/free", "ConfigMap/made")),
        ],
    )
    def test_the_tree_of_the_highest_owner_is_shown(self, typed, words, marked, shown):
        code, out, err = typed(*words.split())

        assert (code, objects(out), err) == (0, list(shown), "")
        assert objects("".join(line for line in out.splitlines() if "←" in line)) == marked


class TestWrongInput:
    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            ("a/b/c", 2, "'a/b/c' is neither a NAME nor KIND/NAME"),
            ("/demo", 2, "'/demo' is neither"),
            ("bg/", 2, "'bg/' is neither"),
            ("bg/..", 2, "'bg/..' is neither"),
            ("bg/demo x", 2, "is neither KIND/NAME nor KIND NAME"),
            ("bg demo x", 2, "is neither KIND/NAME nor KIND NAME"),
            ("svc/none", 1, "Service/none does not exist in namespace ns; name another"),
            ("bg.apps/demo", 1, 'the server serves no kind "bg.apps"'),
            ("deploy/none", 1, "Deployment/none does not exist in namespace ns; name another"),
            ("sts/none", 1, "StatefulSet/none does not exist in namespace ns; name another"),
            ("demo -A -n x", 2, "--namespace and --all-namespaces exclude each other"),
            ("web", 1, "Deployment/web exists, and hedgerow holds no field of it now"),
            ("none", 1, "a resource named none does not exist in namespace ns; name another"),
            ("bg/none", 1, "BlueGreen/none does not exist in namespace ns; name another"),
            ("bg/none -A", 1, "BlueGreen/none does not exist\n"),
            ("bg/none -w", 1, "BlueGreen/none does not exist"),
            ("two", 2, "'two' could be any of bluegreen/two and memcached/two: say which"),
        ],
    )
    def test_it_is_one_line_and_an_exit_code(self, typed, cluster, words, code, said):
        cluster.store.put({**kin.resource(), "metadata": {"name": "two", "namespace": "ns"}})
        cluster.store.put(memcached("two"))
        ended, out, err = typed(*words.split())

        assert (ended, out) == (code, "")
        assert err.startswith("hedgerow: ")
        assert said in err
        assert err.count("\n") == 1

    def test_nothing_at_all_is_said_and_is_no_failure(self, typed):
        told = "hedgerow: there are no resources of hedgerow here\n"

        assert typed("-n", "other") == (0, "", told)


ALL_FORBIDDEN = dict.fromkeys(OURS, FORBIDDEN)
RIGHTS: dict[str, tuple[Object, tuple[str, ...], str, int, str, list[str]]] = {
    "a kind of a child that may not be read is left out": (
        {"Pod": FORBIDDEN}, (), "demo", 0, f"{LEFT_OUT} Pod; {PODS}: you may not\n", NO_PODS,
    ),
    "so is one that is not served": (
        {"Pod": ABSENT}, (), "demo", 0, f"Pod is left out: {PODS}: no such kind\n", NO_PODS,
    ),
    "kinds of ours that are not installed are not missed": (
        {"Memcached": ABSENT, "CronJob": ABSENT}, (), "", 0, "", TREE,
    ),
    "one of ours that may not be read is told": (
        {"Memcached": FORBIDDEN}, (), "", 0,
        f"{LEFT_OUT} Memcached; {MEMCACHEDS}: you may not\n", TREE,
    ),
    "one that is not installed either is not missed": (
        {"Memcached": FORBIDDEN}, ("Memcached",), "", 0, "", TREE,
    ),
    "nothing of ours is served": (
        dict.fromkeys(OURS, ABSENT), (), "", 1, "none of hedgerow's kinds is installed here: ", [],
    ),
    "nothing may be read and nothing is installed": (
        ALL_FORBIDDEN, tuple(OURS), "", 1,
        "none of hedgerow's kinds is installed here: run `hedgerow install`, or name any", [],
    ),
    "there is nothing left to follow": (
        ALL_FORBIDDEN, (), "--watch -o json", 1, "GET /apis/", [],
    ),
    "what is asked for may be of a kind that may not be read": (
        {"Memcached": FORBIDDEN}, (), "nonesuch", 1, f"{MEMCACHEDS}: you may not; ", [],
    ),
    "or is": (
        {"Memcached": FORBIDDEN}, (), "memcached/nonesuch", 1, f"{MEMCACHEDS}: you may not; ", [],
    ),
    "other errors are not swallowed": ({"Pod": DOWN}, (), "demo", 1, f"{PODS}: down", []),
}  # fmt: skip
"""What the server answers to lists, what it does not serve, and how a line then ends."""


class TestRights:
    @pytest.mark.parametrize(
        ("answers", "unserved", "words", "code", "said", "shown"), RIGHTS.values(), ids=RIGHTS
    )
    def test_what_cannot_be_read_is_said_and_left_out(
        self, typed, cluster, answers, unserved, words, code, said, shown
    ):
        cluster.answers |= {f"list {kind}": reply for kind, reply in answers.items()}
        for resource in ALL.resources:
            if resource.api.kind in unserved:
                cluster.answers[f"/apis/{resource.api.group_version}"] = ABSENT
        ended, out, err = typed(*words.split())

        assert (ended, objects(out)) == (code, shown)
        assert err.startswith(f"hedgerow: {said}" if said else "")
        assert bool(err) is bool(said)
        if said.endswith("\n"):
            assert err == f"hedgerow: {said}"

    def test_when_nothing_of_ours_may_be_read_the_kinds_are_counted(self, typed, cluster):
        cluster.answers |= {f"list {kind}": FORBIDDEN for kind in OURS}
        code, out, err = typed()
        said, counted = err.splitlines()

        assert (code, out) == (0, "")
        assert said.endswith("there are no resources of hedgerow here of a kind that you may read")
        left_out = LEFT_OUT.replace("1 kind is", f"{len(OURS)} kinds are")
        assert counted.startswith(f"hedgerow: {left_out} {', '.join(OURS)}; GET /apis/")
        found = json.loads(typed("-o", "json")[1])
        assert found["resources"] == []
        assert sorted(found["unread"]) == OURS


class TestJson:
    def test_it_says_all_that_the_tree_says(self, typed, cluster):
        said = [kin.contested("Deployment/web"), kin.contested("Deployment/web", ".x", since="")]
        cluster.store.put(kin.resource(contested=said))
        cluster.store.put(kin.owned(kin.SET, "web-0", "Deployment web", spec={"replicas": 0}))
        code, out, err = typed("deploy/web", "-o", "json")
        found = json.loads(out)
        [resource] = found["resources"]
        deployment, service = resource["children"]

        assert (code, err, found["unread"]) == (0, "", {})
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
            "readiness": {"verdict": "Current", "words": "ClusterIP 10.0.0.1"},
            "changed": {"manager": "hedgerow-bluegreen", "operation": "Apply", "time": kin.NOON},
        }
        scaled = {"manager": "kubectl", "operation": "Update", "subresource": "scale"}
        scaled["object"] = "Deployment/web"
        assert deployment["contested"] == [
            {"path": ".spec.replicas", **scaled, "since": kin.NOON},
            {"path": ".x", **scaled},
        ]
        assert deployment["asked"]
        sets = deployment["children"]
        assert [(each["name"], each.get("past", False)) for each in sets] == [
            ("web-0", True),
            ("web-1", False),
        ]
        _, as_yaml, _ = typed("deploy/web", "-o", "yaml")
        assert as_yaml.startswith("resources:\n- apiVersion: ")
        assert from_yaml(as_yaml) == (found,)

    def test_what_could_not_be_read_is_told_in_it(self, typed, cluster):
        cluster.answers["list Pod"] = FORBIDDEN
        code, out, err = typed("demo", "-o", "json")

        assert (code, err) == (0, "")
        assert json.loads(out)["unread"] == {"Pod": "is left out: you may not read it here"}


Act = Callable[[], object]


class TestWatch:
    @pytest.fixture
    def watched(self, typed, monkeypatch, signalled):
        """Type `hedgerow tree demo -w`, act when all is read, and press Ctrl-C.

        What an act has done is seen before the next one.
        """

        def run(
            *acts: Act,
            output: str = "tree",
            terminal: str = "",
            seen: Callable[[], Awaitable[None]] = anyio.wait_all_tasks_blocked,
        ) -> tuple[int, str, str]:
            signalled(following, *acts, seen=seen)
            monkeypatch.setattr(sys.stdout, "isatty", lambda: bool(terminal), raising=False)
            monkeypatch.setenv("TERM", terminal)
            return typed("demo", "-w", "-o", output)

        return run

    @pytest.fixture
    def told(self, cluster) -> Callable[..., Act]:
        """Return what puts an object, so that a watch tells of it."""
        return lambda obj: partial(cluster.store.put, obj)

    @pytest.mark.parametrize(("output", "terminal"), [("tree", ""), ("tree", "dumb"), ("yaml", "")])
    def test_elsewhere_it_is_shown_once(self, watched, told, output, terminal):
        code, out, err = watched(told(UNREADY), output=output, terminal=terminal)

        assert (code, err) == (0, "")
        assert out.count("name: web-1-a" if output == "yaml" else "Pod/web-1-a") == 1
        assert "\x1b" not in out
        assert "not ready" not in out

    def test_it_ends_well_when_nobody_reads_on(self, watched, told, monkeypatch):
        silenced: list[bool] = []
        monkeypatch.setattr("hedgerow.cli.exits.silence", lambda: silenced.append(True))

        def broken(*_: Any, **__: Any) -> None:
            raise BrokenPipeError

        code, out, err = watched(
            lambda: monkeypatch.setattr(following, "echo", broken), told(UNREADY), output="json"
        )

        assert (code, err, silenced) == (0, "", [True])
        assert out.count("\n") == 1

    def test_for_programs_each_change_is_a_line(self, watched, cluster, told):
        def mark() -> None:
            for stream in cluster.streams:
                stream.bookmark()

        strange = told(kin.owned(kin.DEPLOYMENT, "stranger", "another"))
        code, out, err = watched(mark, told(UNREADY), strange, output="json")
        found = list(map(json.loads, out.splitlines()))

        assert (code, err) == (130, "")
        kinds = ("BlueGreen", "Deployment", "Job", "Pod", "ReplicaSet", "Service")
        assert sorted(cluster.asked("watch")) == [(kind, "ns", "") for kind in kinds]
        pods = [one["resources"][0]["children"][0]["children"][0]["children"][0] for one in found]
        words = [pod["readiness"]["words"] for pod in pods]
        assert words == ["Ready", "Running, not ready"]

    def test_a_resource_that_goes_takes_all_that_it_had_with_it(self, watched, cluster):
        out = watched(partial(cluster.store.drop, kin.resource()), output="json")[1]

        assert [len(json.loads(line)["resources"]) for line in out.splitlines()] == [1, 0]

    @pytest.mark.parametrize("later", [False, True])
    def test_a_kind_that_may_not_be_followed_is_told(self, watched, cluster, told, later):
        def forbid() -> None:
            cluster.denied = {"list pods", "watch pods"}
            for stream in cluster.streams:
                if stream.kind == "Pod":
                    stream.line(line("ERROR", FORBIDDEN.body))

        if not later:
            forbid()
        more = told(kin.owned(kin.SERVICE, "more", "r"))
        code, out, err = watched(*([forbid] if later else []), more, output="json")
        last = json.loads(out.splitlines()[-1])
        at_once, in_time = "is left out: ", "may be out of date: "

        assert (code, err) == (130, "")
        assert [*last["unread"]] == ["Pod"]
        assert last["unread"]["Pod"].startswith(in_time if later else at_once)
        assert '"more"' in out
        assert ('"web-1-a"' in out.splitlines()[-1]) is later

    def test_on_a_terminal_the_tree_is_drawn_again_in_place(self, watched, cluster, told):
        cluster.denied = {"list services", "watch services"}
        code, out, err = watched(told(UNREADY), terminal="xterm")
        first, *_, last = out.split("\x1b[1A\x1b[2K")

        assert (code, err) == (130, "")
        assert first.startswith("\x1b[?25l")
        assert "✓ Ready" in first.split("Running")[0]
        assert out.count("Namespace") > 1
        assert "~ Running, not ready" in out
        assert f"{LEFT_OUT} Service" in out
        assert last.endswith("\x1b[?25h")

    def test_nothing_is_left_once_all_is_gone(self, watched, cluster):
        gone = partial(cluster.store.drop, kin.resource())

        assert "nothing is left" in watched(gone, terminal="xterm")[1]

    def test_ages_are_drawn_anew_on_a_terminal(self, watched, monkeypatch):
        drawn: list[str] = []

        def lines(*_: object) -> list[Text]:
            drawn.append("again")
            return []

        async def meanwhile() -> None:
            with anyio.fail_after(30):
                while len(drawn) < 10:
                    await anyio.lowlevel.checkpoint()

        monkeypatch.setattr(following, "TICK", 0)
        monkeypatch.setattr(TreesView, "lines", lines)

        assert watched(meanwhile, seen=anyio.lowlevel.checkpoint, terminal="xterm")[0] == 130
