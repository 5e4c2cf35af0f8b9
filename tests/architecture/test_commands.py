"""What is printed can be pasted: every command is one line that a shell reads as it was meant."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from hedgerow.cli.commands import LAZY
from hedgerow.cli.install import definitions
from hedgerow.cli.install.command import change_lines
from hedgerow.objects import ObjectRef
from hedgerow.plan.immutable import Fixed
from hedgerow.plan.remedies import overview, remedies
from hedgerow.plan.yield_and_claim import CLAIM, allow_claims, claims_refused
from hedgerow.texts import command_line, within
from hedgerow_schemas.base import ApiResource, ContestedField
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Service
from hedgerow_tools.fields.by_manager import CountScope
from hedgerow_tools.switch import decision, other_holders
from support.code.sources import ROOT, modules
from support.programs.printed import documented, in_code, in_help, refusal

NASTY = """it's "$(touch here)"; `x` & a -b *"""
PROGRAMS = ("typed", "program_name", "program", "called", "command", "self.program")
"""What a program's name comes from, where it begins a command."""
QUOTED = ("quote(", "shlex.quote(", "option(")
"""What returns words as a shell takes them."""
VALUE = "\x00"
NAMES = {f"hedgerow sandbox {VALUE}"}
"""What is called like a command: the subject of a certificate."""
PROGRAM = "\x01"
COMMAND = re.compile(
    rf"(?:(?:kubectl|{PROGRAM}|hedgerow) (?:[a-z]+)\b)[^`\n]*",
)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```(console|sh)\n(.*?)```", re.DOTALL)


def flat(text: ast.JoinedStr) -> str:
    """Return an f-string with a mark for each value in it, another one for a program's name."""
    return "".join(
        _mark(ast.unparse(part.value)) if isinstance(part, ast.FormattedValue) else str(part.value)
        for part in text.values
        if isinstance(part, ast.FormattedValue | ast.Constant)
    )


def _mark(value: str) -> str:
    if value.startswith(QUOTED):
        return ""
    return PROGRAM if value.removesuffix("()") in PROGRAMS else VALUE


def by_hand(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the commands in f-strings into which values are put without a shell's quotes."""
    texts = (flat(node) for node in nodes if isinstance(node, ast.JoinedStr))
    found = (match[0] for text in texts for match in COMMAND.finditer(text))
    verbs = ((one, one.split()[1]) for one in found if VALUE in one and one not in NAMES)
    return [
        one
        for one, verb in verbs
        if (verb != "cannot" if one.startswith("kubectl ") else verb in LAZY)
    ]


class TestCode:
    def test_no_value_is_put_into_a_command_but_by_the_one_function_that_quotes(self):
        found = {
            module.name: hits
            for module in modules()
            # The demo's lines are run by a shell as they are printed.
            if "/demo/" not in module.name and (hits := by_hand(module.nodes))
        }

        assert found == {}

    def test_one_that_does_is_found(self):
        source = """f"do `{typed()} adopt {name} --yes` and then" """

        assert len(by_hand(ast.walk(ast.parse(source)))) == 1


class TestPrograms:
    """`tests/cluster/test_printed_commands.py` asks kubectl about its own."""

    @pytest.mark.parametrize("source", [documented, in_help, in_code])
    def test_hedgerow_takes_each_of_its_commands_that_is_printed(self, source):
        ours = [one for one in source() if one.words[0] == "hedgerow"]

        assert len(ours) > 30
        assert [f"{one} -> {why}" for one in ours if (why := refusal(one.words))] == []

    def test_one_that_it_does_not_take_is_found(self):
        assert refusal(("hedgerow", "tree", "--deep"))


class Printed(NamedTuple):
    """A place that prints a command, what it prints, and a word that has to arrive as it is."""

    place: str
    text: str
    word: str


def _contested(reason: str = "OtherValue", path: str = ".spec.x") -> ContestedField:
    return ContestedField(
        object="Role/" + NASTY, path=path, reason=reason, manager=NASTY, declared="bluegreen"
    )


OWNER = ObjectRef(BlueGreen.api, "shop", NASTY, "uid")
ROLE = ApiResource("rbac.authorization.k8s.io/v1", "Role", "roles")
CRD = definitions.DefinitionChange(
    "x.y", "conflicted", {}, (definitions.HeldInDefinition(".spec", "m"),)
)
LABEL = ".metadata.labels.hedgerow.dev/controller"
PLACES = [
    Printed("owners", overview(NASTY, "shop"), NASTY),
    *(Printed(one.effect, one.command, NASTY) for one in remedies(OWNER, {}, _contested())[:1]),
    *(
        Printed(f"{field.reason} {field.path}", one.command, word)
        for field, word in (
            (_contested("DeclaredNoMore"), NASTY),
            (_contested(path=".spec.selector"), NASTY),
            (_contested(path=LABEL), "Role/" + NASTY),
        )
        for one in remedies(OWNER, {}, field)[-1:]
    ),
    *(
        Printed("claimed already", one.command, "hedgerow.dev/allow-claims=true")
        for one in remedies(
            ObjectRef(BlueGreen.api, "shop", "demo", "uid"),
            {CLAIM: "Role/*: spec.x"},
            ContestedField(object="Role/x", path=".spec.x", manager="m", reason="OtherValue"),
        )[-1:]
    ),
    Printed("allow claims", allow_claims(NASTY), NASTY),
    Printed("takeover", other_holders.patch(
        {"kind": "BlueGreen", "metadata": {"name": NASTY, "namespace": "shop"}},
        decision.Setting("routeTo", "Blue"),
    ), NASTY),
    Printed(
        "leftovers", command_line("hedgerow", "adopt", *CountScope("b", NASTY).options(())), NASTY
    ),
]  # fmt: skip


def read_by_shell(command: str) -> list[str]:
    """Return the words of a command as a shell reads them; it runs nothing."""
    script = f"set -f; words() {{ printf '%s\\0' \"$@\"; }}\nwords {command}"
    ended = subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, check=True, timeout=10, env={}
    )
    return ended.stdout.decode().split("\0")[:-1]


class TestPlaces:
    @pytest.mark.parametrize("printed", PLACES, ids=lambda one: one.place)
    def test_a_name_that_a_stranger_chose_arrives_as_it_is(self, printed):
        assert "\n" not in printed.text
        words = read_by_shell(printed.text)
        assert words == shlex.split(printed.text)
        assert any(word == printed.word or printed.word in word for word in words)

    @pytest.mark.parametrize(
        "text",
        [
            claims_refused("shop"),
            str(Fixed(Service({"metadata": {"name": "x", "namespace": "y"}, "spec": {"a": 1}}),
                      ("spec", "a"), 2, "loses it")),
            "\n".join(change_lines(CRD)),
        ],
    )  # fmt: skip
    def test_one_in_a_sentence_is_in_backticks_so_that_no_terminal_folds_it(self, text):
        [command] = [one for one in re.findall("`([^`]*)`", text) if "kubectl " in one]

        assert read_by_shell(command.partition(" | ")[0])[0] in {"kubectl", "hedgerow"}
        assert "kubectl" not in text.replace(f"`{command}`", "")

    def test_words_lead_into_a_namespace_where_there_is_one(self):
        assert command_line("hedgerow", "tree", *within("a b")) == "hedgerow tree -n 'a b'"
        assert command_line("python a.py", "tree", *within("")) == "python a.py tree"


def recorded() -> list[tuple[str, str]]:
    """Return what the documents show of shells: blocks as a whole, and lines with a command."""
    found: list[tuple[str, str]] = []
    for document in DOCUMENTS:
        for kind, block in BLOCK.findall(document.read_text("utf-8")):
            lines = (line.strip().removeprefix("$ ") for line in block.splitlines())
            begins = ("kubectl ", "hedgerow ", "task ", "./task ")
            texts = [block] if kind == "sh" else [one for one in lines if one.startswith(begins)]
            found += [(document.name, text) for text in texts]
    return found


class TestRecordedOutputs:
    def test_every_command_in_them_is_read_by_a_shell(self):
        commands = recorded()
        broken = []
        for name, line in commands:
            ended = subprocess.run(
                ["/bin/sh", "-n", "-c", line], capture_output=True, text=True, check=False
            )
            broken += [(name, line, ended.stderr)] if ended.returncode else []

        assert len(commands) > 50
        assert broken == []
