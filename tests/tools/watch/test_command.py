"""`hedgerow watch`, as typed: what is asked of the cluster and what is printed of its answer."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import partial

import pytest

from hedgerow.kube import client
from hedgerow.kube.watch import reflect
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_tools.watch import command, informer
from support.server.apiserver import refusal
from support.server.connected import Clock, connect
from tools.watch.configs import Configs, config

NODE = ServedKind(ApiResource("v1", "Node", "nodes", namespaced=False), {})
TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "
SYNCED = "synced: 1 configmap in namespace default"
INTERRUPTED = "hedgerow: the watch is interrupted, and tries again: "
WORKS = "hedgerow: the watch works again"
BUSY = refusal(503, "ServiceUnavailable", "starting")


@pytest.fixture
def cluster(monkeypatch) -> Configs:
    """A cluster with the ConfigMaps a and b."""
    cluster = Configs()
    cluster.store.serve(NODE)
    cluster.do("put a 1")
    cluster.put("b", "other", x="1")
    monkeypatch.setattr(client, "connect", connect(cluster))

    def hasty(*where, timing, **more):
        assert timing is None
        return reflect(*where, timing=Clock().timing, **more)

    monkeypatch.setattr(informer, "reflect", hasty)
    return cluster


@pytest.fixture
def typed(cluster, typing, signalled):
    """Type `hedgerow watch …`, act when all is read, and press Ctrl-C.

    Give the exit code, the lines of standard output without their times, and standard error.
    """

    def run(words: str = "", *acts) -> tuple[int, list[str], str]:
        todo = (partial(cluster.do, act) if isinstance(act, str) else act for act in acts)
        signalled(command, *todo)
        code, out, err = typing("watch", *words.split())
        return code, [re.sub(TIME, "", line) for line in out.splitlines()], err

    return run


class TestAsked:
    @pytest.mark.parametrize(
        ("words", "asked", "labels"),
        [
            ("", ("Pod", "default", ""), ""),
            ("configmap -n other", ("ConfigMap", "other", ""), ""),
            ("configmaps -A", ("ConfigMap", "", ""), ""),
            ("po --all-namespaces", ("Pod", "", ""), ""),
            ("deployments.apps --namespace x", ("Deployment", "x", ""), ""),
            ("secret -l a=b", ("Secret", "default", ""), "a=b"),
            ("nodes", ("Node", "", ""), ""),
            ("node -n x", ("Node", "", ""), ""),
        ],
    )
    def test_kind_namespace_and_selector_are_written_as_for_kubectl(
        self, typed, cluster, words, asked, labels
    ):
        code, _, err = typed(words)
        [watch] = [one for one in cluster.exchanges if one.verb == "watch"]

        assert (code, err) == (130, "")
        assert cluster.asked("watch", "list") == [asked]
        assert watch.request.params.get("labelSelector", "") == labels

    def test_one_object_is_chosen_by_its_name(self, typed, cluster):
        cluster.do("put c 1")
        code, lines, err = typed("configmap/a", "put a 2")
        [watch] = [one for one in cluster.exchanges if one.verb == "watch"]

        assert (code, err) == (130, "")
        assert watch.request.params["fieldSelector"] == "metadata.name=a"
        assert lines == [SYNCED, "updated default/a  -  changed by user: .data.x"]

    def test_flags_choose_the_cluster(self, typed, cluster):
        assert typed("--context there --kubeconfig file")[1] == [
            "synced: 0 pods in namespace default"
        ]
        [login] = cluster.logins
        assert (login["context"], login["kubeconfig"]) == ("there", "file")
        assert re.fullmatch(r"hedgerow/\d.*", login["user_agent"])


class TestPrinted:
    def test_changes_are_told_after_all_is_read(self, typed, cluster):
        edit = partial(cluster.store.merge, config("c"), {"data": {"x": "1"}}, "editor")

        assert typed("configmaps", "put c", edit, "remove c") == (
            130,
            [
                SYNCED,
                "added default/c  -",
                "updated default/c  -  added by editor: .data.x",
                "deleted default/c  -",
            ],
            "",
        )

    def test_after_a_gap_nobody_is_named_who_may_not_have_done_it(self, typed, cluster):
        cluster.put("a", x="1", y="1")
        cluster.put("d")
        edit = partial(cluster.store.merge, config("a"))

        def meanwhile() -> None:
            cluster.later = 1
            edit({"data": {"y": None}}, "somebody")
            edit({"data": {"x": "2"}}, "editor")
            cluster.do("remove d; cut; compact")

        gap = "  (during a gap of the watch)"
        assert typed("configmaps", meanwhile)[1][1:] == [
            (
                "updated default/a  -  changed by editor: .data.x; removed by unknown, held before"
                f" by user: .data.y{gap}"
            ),
            f"deleted default/d  -{gap}",
            "synced again after a gap: 1 configmap in namespace default",
        ]

    def test_json_is_one_object_a_line(self, typed):
        code, out, err = typed("configmaps -o json", "put a 2")
        synced, updated = map(json.loads, out)

        assert (code, err) == (130, "")
        assert (synced["type"], synced["count"]) == ("SYNCED", 1)
        assert [change["path"] for change in updated["changes"]] == [".data.x"]

    @pytest.mark.parametrize("words", ["secrets", "secrets -o json"])
    def test_values_of_secrets_are_nowhere(self, typed, cluster, words):
        def secret(value: str) -> partial:
            meta = {"name": "s", "namespace": "default", "annotations": {"copy": value}}
            data = {"k": b64encode(value.encode()).decode()}
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
            return partial(cluster.store.apply, body, "author")

        _, out, err = typed(words, secret("MARKER-1"), secret("MARKER-2"))

        assert ".data.k" in out[-1]
        for hidden in ("MARKER", "TUFSS0VS"):
            assert hidden not in "".join(out) + err

    def test_it_ends_well_when_nobody_reads_on(self, typed, monkeypatch):
        silenced: list[bool] = []
        monkeypatch.setattr("hedgerow.cli.exits.silence", lambda: silenced.append(True))

        def broken(*_, **__) -> None:
            raise BrokenPipeError

        monkeypatch.setattr("hedgerow_tools.watch.lines.echo", broken)

        assert typed() == (0, [], "")
        assert silenced == [True]


class TestTrouble:
    @pytest.mark.parametrize(
        ("fails", "acts", "said"),
        [
            ([], ["down 9"], "connection refused"),
            ([BUSY] * 9, [], "starting"),
            ([], ["forbid 4", "put a 2"], "you may no longer"),
        ],
        ids=["an outage", "a server that has too much to do", "rights that are taken away"],
    )
    def test_what_may_end_is_waited_for_and_told_once_as_its_end_is(
        self, typed, cluster, fails, acts, said
    ):
        cluster.fails = list(fails)
        code, out, err = typed("configmaps", *acts)
        interrupted, works = err.splitlines()

        assert code == 130
        assert SYNCED in out
        assert interrupted.startswith(INTERRUPTED)
        assert interrupted.endswith(said)
        assert works == WORKS

    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            ("pods/", 2, "'pods/' is no KIND[/NAME], such as pods or deployment/web"),
            ("a/b/c", 2, "'a/b/c' is no KIND[/NAME], such as pods or deployment/web"),
            ("pods/web -A", 2, "an object has one namespace: leave out --all-namespaces"),
            ("-A -n x", 2, "--namespace and --all-namespaces exclude each other"),
            ("-o yaml", 2, "'yaml' is not one of 'text', 'json'"),
            ("nonesuch", 1, 'the server serves no kind "nonesuch"'),
            ("deploymnt", 1, "(did you mean deployment?)"),
        ],
    )
    def test_wrong_input_is_one_line_and_an_exit_code(self, typed, words, code, said):
        ended, out, err = typed(words)

        assert (ended, out) == (code, [])
        assert err.startswith("hedgerow: ")
        assert said in err
        assert err.count("\n") == 1

    @pytest.mark.parametrize(
        ("status", "reason", "words", "code", "said"),
        [
            (403, "Forbidden", "pods", 1, "no; ask for the right"),
            (400, "BadRequest", "pods -l a", 2, "Invalid value: --selector: no; see `hedger"),
            (400, "BadRequest", "pods", 1, ": no; "),
            (405, "MethodNotAllowed", "pods -l a=b", 1, ": no; "),
            (405, "MethodNotAllowed", "pods", 1, ": no; "),
        ],
    )
    def test_a_refusal_at_the_start_ends_it(
        self, typed, cluster, status, reason, words, code, said
    ):
        """The last two: a kind that can be listed and not watched."""
        refused = refusal(status, reason, "no")
        cluster.refused = dict.fromkeys((True, False), refused)
        if status != 405:
            cluster.answers["list Pod"] = refused
        ended, out, err = typed(words)

        assert (ended, out) == (code, [] if status != 405 else out)
        assert said in err
        assert err.count("\n") == 1
