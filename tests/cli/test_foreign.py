"""Every command, on what others wrote: no character reaches a terminal that was not meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml

from hedgerow.cli import main
from hedgerow.cli.commands import LAZY
from hedgerow.kube import client
from support.objects.foreign import COPY, FORGED, POISON
from support.programs.odd import Mode, OddServer
from support.server.connected import Login

pytestmark = pytest.mark.untraced

TARGET = "deployment/web"
AUDITED = ("--crds", "{file}", "--samples", "{file}")
FILES = ("-f", "{file}")
CALLS: dict[tuple[str, ...], list[tuple[str, ...]]] = {
    ("version",): [()],
    ("demo",): [("{poison}",)],
    ("demo", "crd-install"): [("{poison}",)],
    ("sandbox", "up"): [("--kubernetes", "{poison}", "--dir", "{dir}")],
    ("sandbox", "down"): [("--dir", "{dir}")],
    ("sandbox", "status"): [("--dir", "{dir}")],
    ("sandbox", "env"): [("--dir", "{dir}")],
    ("audit",): [
        (*AUDITED, "--fail-on", "{poison}", "--", "x"), (*AUDITED, "-o", "{poison}", "--", "x"),
        (*AUDITED, "--baseline", "{file}", "--", "x"),
    ],
    ("install",): [("--dry-run",), (), ("--controllers", "{poison}")],
    ("uninstall",): [(), ("--delete-resources",)],
    ("check",): [(), ("--instance", "{poison}"), ("--controllers", "{poison}")],
    ("manifests",): [("--image", "{poison}"), ("--instance", "{poison}")],
    ("owners",): [(TARGET,), (TARGET, "--contested"), ("{poison}",), (TARGET, "-n", "{poison}")],
    ("tree",): [("-A",), ("-w",), ("bluegreen/web",), ("{poison}",)],
    ("watch",): [("{poison}",), ("deploy", "-l", "{poison}")],
    ("release",): [
        (TARGET, "--to", "other"), (TARGET, "--yes"), (TARGET, "--field", "{poison}"),
        (TARGET, "--field", "spec.replicas", "--yes"), ("--instance", ""),
        ("--instance", "", "--yes", "--to", "other"),
    ],
    ("promote",): [("demo",), ("{poison}",), ("demo", "--wait", "{poison}")],
    ("rollback",): [("{poison}",), ("{poison}", "--wait", "50ms")],
    ("adopt",): [
        (TARGET, "--from", "old"), (TARGET, "--from", "{poison}"),
        (TARGET, "--from", "old", "--yes"), ("--all", "--from", "old", "--to", "new", "--yes"),
    ],
    ("plan",): [
        FILES, ("bluegreen/demo",), ("{poison}",),
        (*FILES, "--field-manager", "helm"), (*FILES, "--force"),
    ],
    ("run",): [("--context", "{poison}"), ("--controllers", "{poison}")],
    ("schedule", "next"): [
        ("{poison}",), ("* * * * *", "--zone", "{poison}"),
        FILES, (TARGET,), (TARGET, "--from", "{poison}"), ("cj", "{poison}"),
    ],
    ("new",): [("{poison}", "--group", "x.example", "--kind", "X")],
    ("completion",): [("bash",), ("zsh",), ("fish",), ("{poison}",)],
}  # fmt: skip
"""What is typed, at least once for each command: `{file}` and `{dir}` have odd names."""
KUBECONFIG = yaml.safe_dump(
    {
        "current-context": "odd",
        "contexts": [{"name": "odd", "context": {"cluster": "odd", "user": "odd"}}],
        "clusters": [{"name": "odd", "cluster": {"server": "https://odd.invalid"}}],
        "users": [{"name": "odd", "user": {"token": "x"}}],
    }
)
MANIFESTS = yaml.safe_dump_all(
    [
        {
            "apiVersion": "app.demo.kakao.com/v1",
            "kind": "BlueGreen",
            "metadata": {"name": POISON, "namespace": POISON},
            "spec": {"routeTo": POISON},
        },
        {"apiVersion": POISON, "kind": POISON, "metadata": {"name": POISON}},
        {
            "apiVersion": "batch.tutorial.kubebuilder.io/v1",
            "kind": "CronJob",
            "metadata": {"name": POISON},
            "spec": {"schedule": POISON},
        },
    ]
)
STYLE = re.compile(r"\r?\x1b\[([0-9;]*m|\?25[lh]|[0-9]*[AK])")
"""What we mean: colours, and how a picture is drawn again."""
ESCAPED = re.compile(r"\\(u001b|x1b|e)")
CONCEALED = "\x1b[8m"


def leaves(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    below = getattr(command, "commands", {})
    if not below or command.invoke_without_command:
        yield path, {param.name: param for param in command.params}
    for name, each in below.items():
        yield from leaves((*path, name), each)


TABLE: dict[tuple[str, ...], dict[str, Any]] = {
    ("version",): {},
    **{k: v for name, lazy in LAZY.items() for k, v in leaves((name,), lazy.load(name))},
}
"""All commands that there are, with their parameters."""


def outputs(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return what chooses each form of a command's output."""
    if "output" not in TABLE[path] or path == ("audit",):  # which is refused in each form
        return [()]
    form = TABLE[path]["output"].type_descriptor.annotation
    return [("--output", getattr(one, "value", one)) for one in get_args(form) or form]


def typed() -> Iterator[Any]:
    for path, calls in CALLS.items():
        modes: tuple[Mode, ...] = get_args(Mode)
        for call in calls:
            for output in outputs(path):
                for mode in modes if "kubeconfig" in TABLE[path] else modes[:1]:
                    words = (*path, *call, *output)
                    yield pytest.param(words, mode, id=" ".join((mode, *words)))


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Type a line where the API server is odd; return what it prints, standard error last."""

    def run(words: tuple[str, ...], mode: Mode) -> tuple[str, str]:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG)
        file = tmp_path / f"{COPY}\r{FORGED}\n{FORGED}\x7f\x9b\u202e\u2028.yaml"
        file.write_text(MANIFESTS)
        places = {"{poison}": POISON, "{file}": str(file), "{dir}": f"{file}.d"}
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        odd = Login(OddServer(mode))
        monkeypatch.setattr(client, "new_transport", lambda *_: None)
        monkeypatch.setattr(client, "Channel", lambda *_: odd)
        with pytest.raises(SystemExit):
            main([places.get(word, word) for word in words])
        shown = capsys.readouterr()
        return shown.out, shown.err

    return run


def test_every_command_there_is_is_typed():
    assert TABLE.keys() == CALLS.keys()


SILENT = {
    ("version",),
    *(("completion", shell) for shell in ("bash", "zsh", "fish")),
    ("install",),
}
"""What prints nothing that others wrote; `install` only where the server refuses it."""
UNREADABLE = {
    *(("tree", "-A", "--output", form) for form in ("json", "yaml")),
    ("tree", "-w", "--output", "yaml"),
    *(
        ("release", "--instance", "", *more, "--output", "json")
        for more in ((), ("--yes", "--to", "other"))
    ),
}
"""What leaves the kinds out that may not be read, or ends there, with a reason of our own."""
REASONED = {
    ("release", TARGET, *more, "--output", "json")
    for more in ((), ("--to", "other"), ("--yes",), ("--field", "{poison}"))
}
"""What fails with a reason for people, which quotes others escaped, in JSON as well."""


@pytest.mark.parametrize(("words", "mode"), list(typed()))
def test_nothing_that_a_terminal_obeys_is_printed(run, words, mode, monkeypatch):
    if mode == "conflicts":
        monkeypatch.setenv("FORCE_COLOR", "1")
    out, err = run(words, mode)
    shown = f"{out}\n{err}"

    is_silent = words in SILENT or (mode == "refusals" and words in UNREADABLE)
    assert is_silent or ESCAPED.search(shown)
    assert CONCEALED not in shown
    for line in STYLE.sub("", shown).split("\n"):
        assert line.replace("\t", "").isprintable()
        assert not line.strip().startswith(FORGED)
    is_quoted = out and "json" in words and words not in REASONED
    if is_quoted and (not is_silent or ESCAPED.search(out)):
        texts = out.splitlines() if {"watch", "-w"} & set(words) else [out]
        assert COPY in "".join(text for each in texts for text in strings(json.loads(each)))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (text for pair in value.items() for one in pair for text in strings(one))
    elif isinstance(value, list):
        yield from (text for one in value for text in strings(one))
    elif isinstance(value, str):
        yield value
