"""`hedgerow watch`, as typed: what is asked of the cluster and what is printed of its answer."""

from __future__ import annotations

import json
import os
import re
import signal
from base64 import b64encode
from functools import partial

import anyio
import pytest

from cli.watch.standin import StandIn, all_of, config, impatient
from hedgerow.cli import main
from hedgerow.cli.watch import informer, memory
from hedgerow.kube import client
from hedgerow.kube.errors import Forbidden, Invalid, Unavailable
from hedgerow.kube.watch import reflect

TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "


@pytest.fixture
def cluster(monkeypatch) -> StandIn:
    """A cluster with the ConfigMaps a and b; after its steps comes Ctrl-C."""
    cluster = StandIn()
    cluster.put("a", x="1")
    cluster.put("b", "other", x="1")

    async def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep_forever()

    def hasty(*where, timing, **more):
        assert timing is None
        return reflect(*where, timing=impatient(), **more)

    cluster.end = interrupt
    monkeypatch.setattr(client, "connect", cluster.connect)
    monkeypatch.setattr(informer, "reflect", hasty)
    return cluster


@pytest.fixture
def typed(cluster, capsys):
    """Type `hedgerow watch …`; give the exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, list[str], str]:
        with pytest.raises(SystemExit) as ended:
            main(("watch", *words))
        shown = capsys.readouterr()
        lines = [re.sub(TIME, "", line) for line in shown.out.splitlines()]
        return int(ended.value.code or 0), lines, shown.err

    return run


class TestAsked:
    def test_pods_of_the_contexts_namespace_are_the_default(self, typed, cluster):
        assert typed() == (130, ["synced: 0 pods in namespace default"], "")
        assert cluster.asked == [("watch", "Pod", "default", "")]

    @pytest.mark.parametrize(
        ("words", "asked"),
        [
            (("cm", "-n", "other"), ("ConfigMap", "other", "")),
            (("configmaps", "-A"), ("ConfigMap", "", "")),
            (("po", "--all-namespaces"), ("Pod", "", "")),
            (("deployments.apps", "--namespace", "x"), ("Deployment", "x", "")),
            (("secret", "-l", "a=b"), ("Secret", "default", "a=b")),
            (("nodes",), ("Node", "", "")),
            (("node", "-n", "x"), ("Node", "", "")),
        ],
    )
    def test_kind_namespace_and_selector_are_written_as_for_kubectl(
        self, typed, cluster, words, asked
    ):
        words = [word.replace("cm", "configmap") if word == "cm" else word for word in words]

        assert typed(*words)[0] == 130
        assert cluster.asked == [("watch", *asked)]

    def test_flags_choose_the_cluster(self, typed, cluster):
        typed("--context", "there", "--kubeconfig", "file")

        assert cluster.connections[0]["context"] == "there"
        assert cluster.connections[0]["kubeconfig"] == "file"
        assert re.fullmatch(r"hedgerow/\d.*", cluster.connections[0]["user_agent"])


class TestPrinted:
    def test_changes_are_told_after_all_is_read(self, typed, cluster):
        cluster.steps = [
            partial(cluster.put, "c"),
            partial(cluster.model.merge, config("c"), {"data": {"x": "1"}}, "editor"),
            partial(cluster.remove, "c"),
        ]

        assert typed("configmaps") == (
            130,
            [
                "synced: 1 configmap in namespace default",
                "added default/c  -",
                "updated default/c  -  added by editor: .data.x",
                "deleted default/c  -",
            ],
            "",
        )

    def test_what_is_there_is_told_if_asked_for(self, typed):
        assert typed("configmaps", "--existing", "-A")[1] == [
            "existing default/a  -",
            "existing other/b  -",
            "synced: 2 configmaps in all namespaces",
        ]

    def test_a_gap_is_told_with_what_happened_meanwhile(self, typed, cluster):
        cluster.steps = [all_of(cluster.cut, partial(cluster.remove, "a"), cluster.compact)]

        assert typed("configmaps") == (
            130,
            [
                "synced: 1 configmap in namespace default",
                "deleted default/a  -  (during a gap of the watch)",
                "synced again after a gap: 0 configmaps in namespace default",
            ],
            "",
        )

    def test_after_a_gap_nobody_is_named_who_may_not_have_done_it(self, typed, cluster):
        cluster.put("a", x="1", y="1")
        cluster.model.now += 1
        edit = partial(cluster.model.merge, config("a"))
        cluster.steps = [
            all_of(
                cluster.cut,
                partial(edit, {"data": {"y": None}}, "somebody"),
                partial(edit, {"data": {"x": "2"}}, "editor"),
                cluster.compact,
            )
        ]

        assert typed("configmaps")[1][1] == (
            "updated default/a  -  changed by editor: .data.x; removed by unknown, held before by"
            " user: .data.y  (during a gap of the watch)"
        )

    def test_an_outage_is_told_once_and_its_end_too(self, typed, cluster):
        cluster.steps = [partial(cluster.go_down, 9)]

        code, _, err = typed("configmaps")

        assert (code, err.splitlines()) == (
            130,
            [
                "hedgerow: the watch is interrupted, and tries again: GET /api: connection refused",
                "hedgerow: the watch works again",
            ],
        )

    def test_json_is_one_object_a_line(self, typed, cluster):
        cluster.steps = [partial(cluster.put, "a", x="2")]

        code, out, err = typed("configmaps", "-o", "json")

        assert (code, err) == (130, "")
        synced, updated = map(json.loads, out)
        assert (synced["type"], synced["count"]) == ("SYNCED", 1)
        assert [change["path"] for change in updated["changes"]] == [".data.x"]

    def test_the_seeds_lines(self, typed, cluster):
        cluster.steps = [partial(cluster.put, "a", x="2"), partial(cluster.remove, "a")]

        code, out, err = typed("configmaps", "--seed-format")

        assert (code, err) == (130, "")
        assert [line[20:] for line in out] == [
            "waiting for cache sync",
            "onAdd: default/a",
            "caches are synced",
            "waiting for stop signal",
            "onUpdate: default/a",
            "onDelete: default/a",
            "received stop signal",
        ]

    def test_what_was_not_kept_is_said_once(self, typed, cluster, monkeypatch):
        monkeypatch.setattr(memory.Memory.__init__, "__defaults__", (0,))
        cluster.steps = [partial(cluster.put, "a", x="2"), partial(cluster.put, "a", x="3")]

        code, out, err = typed("configmaps")

        unknown = "updated default/a  -  what changed is unknown: its fields were not kept"
        assert (code, out[1:]) == (130, [unknown, unknown])
        assert err.count("\n") == 1
        assert "more objects than 0 MiB hold" in err

    def test_values_of_secrets_are_nowhere(self, typed, cluster):
        cluster.steps = [
            partial(cluster.model.apply, secret("MARKER-1"), "author"),
            partial(cluster.model.apply, secret("MARKER-2"), "author"),
        ]

        for words in ((), ("-o", "json")):
            steps = list(cluster.steps)
            _, out, err = typed("secrets", *words)
            cluster.steps = steps[:0]
            assert "MARKER" not in "".join(out) + err
            assert "TUFSS0VS" not in "".join(out) + err
            assert words or ".data.k" in out[-1]


def secret(value: str) -> dict:
    meta = {"name": "s", "namespace": "default", "annotations": {"copy": value}}
    encoded = b64encode(value.encode()).decode()
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"k": encoded}}


class TestEnds:
    def test_it_ends_well_when_nobody_reads_on(self, typed, cluster, monkeypatch):
        silenced: list[bool] = []
        monkeypatch.setattr("hedgerow.cli.exits.silence", lambda: silenced.append(True))

        def broken(*_, **__) -> None:
            raise BrokenPipeError

        monkeypatch.setattr("hedgerow.cli.watch.lines.echo", broken)

        assert typed() == (0, [], "")
        assert silenced == [True]


class TestWrongInput:
    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (("pods/web",), 2, "'pods/web' is no KIND, such as pods; choose objects by --selector"),
            (("",), 2, "'' is no KIND"),
            (("-A", "-n", "x"), 2, "--namespace and --all-namespaces exclude each other"),
            (("--seed-format", "-o", "json"), 2, "--seed-format and --output json exclude"),
            (("-o", "yaml"), 2, "'yaml' is not one of 'text', 'json'"),
            (("nonesuch",), 1, 'the server serves no kind "nonesuch"'),
            (("deploymnt",), 1, "(did you mean deployment?)"),
        ],
    )
    def test_it_is_one_line_and_an_exit_code(self, typed, words, code, said):
        ended, out, err = typed(*words)

        assert (ended, out) == (code, [])
        assert err.startswith("hedgerow: ")
        assert said in err
        assert err.count("\n") == 1

    @pytest.mark.parametrize(
        ("error", "words", "code", "said"),
        [
            (Forbidden("you may not"), (), 1, "hedgerow: you may not; ask for the right"),
            (Invalid("no", code=400), ("-l", "a in"), 2, "--selector: no; see `hedgerow watch -"),
            (Invalid("no", code=400), (), 1, "hedgerow: no; "),
            (Invalid("no", code=405), ("-l", "a=b"), 1, "hedgerow: no; "),
        ],
    )
    def test_a_refusal_ends_it(self, typed, cluster, error, words, code, said):
        cluster.refusals["Pod"] = error

        ended, out, err = typed("pods", *words)

        assert (ended, out) == (code, [])
        assert said in err
        assert err.count("\n") == 1

    def test_a_kind_that_can_be_listed_and_not_watched_ends_it(self, typed, cluster):
        cluster.streams = False
        cluster.refused_live = Invalid("watch is not supported", code=405)

        code, _, err = typed("configmaps")

        assert (code, err.count("\n")) == (1, 1)
        assert err.startswith("hedgerow: watch is not supported; ")

    def test_a_server_that_has_only_too_much_to_do_is_waited_for(self, typed, cluster):
        cluster.refusals["Pod"] = Unavailable("starting", code=503)
        asked = 0

        def later(*_):
            nonlocal asked
            asked += 1
            if asked == 3:
                cluster.refusals.clear()

        cluster.on_asked = later

        code, out, err = typed("pods")

        assert (code, out) == (130, ["synced: 0 pods in namespace default"])
        assert err.splitlines() == [
            "hedgerow: the watch is interrupted, and tries again: starting",
            "hedgerow: the watch works again",
        ]

    def test_rights_that_are_taken_away_later_are_waited_for(self, typed, cluster):
        forbidden = Forbidden("you may no longer")
        cluster.steps = [
            all_of(cluster.cut, partial(cluster.refusals.setdefault, "ConfigMap", forbidden))
        ]
        asked = 0

        def later(*_):
            nonlocal asked
            asked += 1
            if asked == 4:
                cluster.refusals.clear()

        cluster.on_asked = later

        code, out, err = typed("configmaps")

        assert (code, len(out)) == (130, 1)
        assert "tries again: you may no longer\n" in err
