"""Every error that can reach the user: one line, its remedy, its exit code."""

from __future__ import annotations

import pytest
import typer

from hedgerow.cli import commands
from hedgerow.cli.errors import explain
from hedgerow.cli.exits import Exit
from hedgerow.cli.install.definitions import InstallError
from hedgerow.deploy.manifest import ManifestError
from hedgerow.kube import errors as kube
from hedgerow.settings import Settings
from hedgerow_testing.demo import DemoError
from hedgerow_testing.sandbox.errors import SandboxError

CASES = {
    "no cluster at all": (kube.NoCluster("none; name one"), 2, "hedgerow sandbox up --nodes 1`"),
    "no kubeconfig": (kube.ConfigError("none; name one"), 2, "none; name one"),
    "no server": (kube.Unreachable("cannot reach it", sent=False), 4, "choose another one with"),
    "another authority": (kube.Untrusted("bad", sent=False), 4, "certificate-authority"),
    "unknown credentials": (kube.Unauthenticated("who?"), 4, "log in again"),
    "no permission": (kube.Forbidden("you may not"), 1, "ask for the right"),
    "no such kind": (kube.Missing("not served"), 1, "`hedgerow install`"),
    "a busy server": (kube.Throttled("slower"), 1, "try again later"),
    "any other answer": (kube.Garbled("no JSON"), 1, "--debug shows where"),
    "the sandbox": (SandboxError("no Go", "install it"), 1, "no Go; install it"),
    "the installer": (InstallError("being deleted", "wait"), 1, "being deleted; wait"),
    "the demo": (DemoError("not so", "look"), 1, "not so; look"),
    "a manifest": (ManifestError("x.yaml: line 2: no"), 1, "x.yaml: line 2: no"),
    "a file": (FileNotFoundError(2, "No such file", "/x/y"), 1, "/x/y: No such file"),
    "an error without a file": (OSError("odd"), 1, "a mistake in hedgerow"),
    "a mistake": (ValueError("boo"), 1, "ValueError: boo; this is a mistake in hedgerow"),
    "an abort": (typer.Abort(), 130, "interrupted"),
    "a bad parameter": (typer.BadParameter("no good"), 2, "no good; see `hedgerow --help`"),
}


@pytest.mark.parametrize(("error", "code", "said"), CASES.values(), ids=CASES)
def test_each_is_one_line_with_its_remedy_and_exit_code(error, code, said):
    line, given = explain(error)

    assert given == code
    assert said in line
    assert "\n" not in line


IN_POD = {
    "another authority": (kube.Untrusted("bad", sent=False), 4, "its ServiceAccount's ca.crt"),
    "no server": (kube.Unreachable("cannot reach it", sent=False), 4, "NetworkPolicies and DNS"),
    "a cut connection": (kube.Dropped("cut"), 4, "NetworkPolicies and DNS"),
    "unknown credentials": (kube.Unauthenticated("who?"), 4, "check that the ServiceAccount or"),
    "no permission": (kube.Forbidden("you may not"), 1, "bind a role that grants it"),
}


@pytest.mark.parametrize(("error", "code", "said"), IN_POD.values(), ids=IN_POD)
def test_in_a_pod_the_remedy_is_one_that_there_is_there(monkeypatch, error, code, said):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    line, given = explain(error)

    assert given == code
    assert said in line


@pytest.mark.parametrize(("error", "code", "_"), CASES.values(), ids=CASES)
def test_in_a_pod_nobody_is_told_to_log_in_or_to_choose_a_context(monkeypatch, error, code, _):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    line, given = explain(error)

    assert given == code
    assert "log in" not in line
    assert "--context" not in line


def test_a_sandbox_is_named_only_where_there_is_one(monkeypatch):
    monkeypatch.setattr(commands, "find_spec", lambda _name: None)

    assert explain(kube.NoCluster("none; name one")) == ("none; name one", Exit.USAGE)


def unserved(request: str) -> kube.KubeError:
    """Return the error of a path that the server does not serve."""
    return kube.from_answer(404, b"404 page not found\n", request=request)


@pytest.mark.parametrize(
    ("request_", "begins"),
    [
        (
            "GET /apis/app.demo.kakao.com/v1/namespaces/demo/bluegreens",
            "BlueGreen is not installed here: run `hedgerow install`; GET /apis/",
        ),
        (
            "PATCH /apis/app.demo.kakao.com/v1/namespaces/bluegreens/bluegreens/demo/status",
            "BlueGreen is not installed here: run `hedgerow install`; PATCH /apis/",
        ),
        (
            "GET /apis/memcached.cache.example.com/v1/memcacheds",
            "Memcached is not installed here: run `hedgerow install`; GET ",
        ),
        (
            "discovery of CronJob in batch.tutorial.kubebuilder.io/v1",
            "CronJob is not installed here: run `hedgerow install`; discovery of ",
        ),
        (
            "GET /apis/webapp.my.domain/v1/namespaces/x/guestbooks",
            "Guestbook is not installed here: run `hedgerow install --controllers guestbook`; ",
        ),
        ("GET /apis/app.demo.kakao.com/v1/namespaces/demo/bluegreenish", "GET /apis/"),
        ("GET /apis/example.com/v1/widgets", "GET /apis/example.com/v1/widgets: the server does"),
        ("GET /apis/apps/v1/deployments", "GET /apis/apps/v1/deployments: the server does not"),
    ],
)
def test_of_a_kind_that_is_not_installed_it_says_first_how_to_install_it(request_, begins):
    line, code = explain(unserved(request_))

    assert (line.startswith(begins), code) == (True, Exit.FAILED), line
    # It is no remedy for a kind of others.
    assert ("hedgerow install" in line) == ("not installed here" in begins)


def test_an_object_that_is_missing_is_no_kind_that_is():
    status = b'{"kind":"Status","code":404,"message":"not found","details":{"name":"demo"}}'
    error = kube.from_answer(
        404, status, request="GET /apis/app.demo.kakao.com/v1/namespaces/x/bluegreens/demo"
    )

    assert "is not installed here" not in explain(error)[0]


def test_the_first_of_several_is_told():
    group = ExceptionGroup("tasks", [ExceptionGroup("more", [DemoError("a", "b")]), ValueError()])

    assert explain(group) == ("a; b", Exit.FAILED)


def test_the_end_of_a_components_log_follows():
    error = SandboxError("etcd exited", "see its log", log=["first", "last"])

    assert explain(error)[0] == "etcd exited; see its log\n  | first\n  | last"


def test_notes_that_others_attach_are_not_shown():
    error = DemoError("a", "b")
    error.add_note("from a library")

    assert explain(error)[0] == "a; b"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"namespaces": ("Shop_",)}, "'Shop_' is not valid: --namespace takes a namespace's name"),
        ({"instance": "x" * 21}, "--instance takes a short name"),
        ({"lease_duration": 0}, "0 is not valid: --lease-duration takes a duration of at least 1s"),
    ],
)
def test_a_refused_setting_is_told_in_the_words_of_the_command_line(setting, said):
    with pytest.raises(ValueError, match="validation error") as refused:
        Settings(**setting)
    line, code = explain(refused.value)

    assert code == Exit.USAGE
    assert said in line
