"""A program of somebody else: what carries its name, and that ours keeps its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hedgerow
from hedgerow.cli import main, operate
from hedgerow.cli.completion import completion_command
from hedgerow.cli.errors import explain
from hedgerow.cli.program import ProgramCall, called, field_manager, installation
from hedgerow.contract import Controller, ControllerOptions, Lag, Option
from hedgerow.deploy.manifest import from_yaml
from hedgerow.kube.errors import Missing
from hedgerow.objects import LONGEST_PROGRAM, Installation, ObjectRef, renamed
from hedgerow.plan.installations import instance_of
from hedgerow.plan.remedies import remedies
from hedgerow.registry import LONGEST, Registry
from hedgerow.runtime.meters import Meters
from hedgerow.runtime.metric_names import DurationMetric
from hedgerow.shard import lease_name
from hedgerow.version import user_agent, version
from hedgerow_schemas.base import ContestedField
from library.greeter import GREETER, Greeting
from support.operator.registered import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.base import Object

THEIRS = Installation(program="greeter")
LONGEST_INSTANCE = 20
MANAGER, LABEL, NAME = 128, 63, 63
"""The most characters of a field manager, a label's value, and a Service's or namespace's name."""

Typed = tuple[int, str, str]


@pytest.fixture
def typed(capsys) -> Callable[..., Typed]:
    """Type a command of the program greeter; return exit code, output and errors."""

    def run(*words: str, registry: Registry | None = None) -> Typed:
        with pytest.raises(SystemExit) as ended:
            main(
                words,
                program="greeter",
                registry=registry or Registry((GREETER,)),
                name="greeter",
            )
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def theirs() -> Iterator[None]:
    """Be the program greeter."""
    with called(ProgramCall(Registry((GREETER,)), name="greeter")):
        yield


class TestName:
    @pytest.mark.parametrize(
        "name",
        ["", "a-b", "hedgerow-a", "A", "9a", "a.b", "a_b", "a" * (LONGEST_PROGRAM + 1), "kube"],
    )
    def test_one_that_could_be_read_in_two_ways_or_would_not_do_is_refused(self, name):
        with pytest.raises(ValueError, match="is no program's name"):
            Installation(program=name)
        with pytest.raises(ValueError, match="is no program's name"):
            hedgerow.Settings(program=name)
        with pytest.raises(ValueError, match="is no program's name"):
            operate((GREETER,), name=name)

    def test_the_longest_names_stay_within_the_limits_of_the_api(self):
        longest = Installation("i" * LONGEST_INSTANCE, "p" * LONGEST_PROGRAM)

        assert len(longest.field_manager("c" * LONGEST)) <= MANAGER
        assert len(longest.label("c" * LONGEST)) <= LABEL
        assert len(f"{longest.base}-metrics") <= NAME
        assert len(f"{longest.base}-webhook") <= NAME
        assert len(longest.system_namespace) <= NAME
        assert re.fullmatch(r"[a-z0-9.]{1,253}/controller", longest.label_key)

    def test_a_field_manager_is_of_one_program_and_one_instance(self):
        manager = "hedgerow-a-b"

        assert instance_of(manager) == "a"
        assert instance_of(manager, "a") is None
        assert instance_of("greeter-a-b", "greeter") == "a"
        assert instance_of("greeter-a-b") is None
        assert instance_of("greeter-install", "greeter") is None


class TestOurs:
    def test_nothing_changes_for_hedgerow(self):
        ours, two = Installation(), Installation("two")

        assert (ours.base, two.base) == ("hedgerow", "hedgerow-two")
        assert two.field_manager("cronjob") == "hedgerow-two-cronjob"
        assert two.selector("cronjob") == "hedgerow.dev/controller=two.cronjob"
        assert (ours.domain, ours.system_namespace) == ("hedgerow.dev", "hedgerow-system")
        assert ours.common_manager("cli") == field_manager() == "hedgerow-cli"
        assert user_agent("hedgerow", "plan") == f"hedgerow/{version()} (plan)"
        assert hedgerow.Settings().system_namespace == "hedgerow-system"
        assert renamed("`hedgerow run`, HEDGEROW_DEBUG", "hedgerow") == (
            "`hedgerow run`, HEDGEROW_DEBUG"
        )


class TestTheirs:
    def test_what_is_written_carries_the_programs_name(self):
        assert THEIRS.field_manager("greeter") == "greeter-greeter"
        assert THEIRS.selector("greeter") == "greeter.hedgerow.dev/controller=greeter"
        assert user_agent("greeter") == f"greeter hedgerow/{version()}"

    def test_so_does_its_lease_in_a_namespace_of_its_own(self):
        settings = hedgerow.Settings(program="greeter", instance="two")

        assert lease_name(settings.installation.base, settings.part) == "greeter-two"
        assert settings.system_namespace == "greeter-system"
        given = hedgerow.Settings(program="greeter", system_namespace="there", shard="2/8")
        assert lease_name(given.installation.base, given.part) == "greeter-shard-2-of-8"
        assert given.system_namespace == "there"

    def test_so_does_its_command_line(self, theirs):
        assert field_manager() == "greeter-cli"
        assert installation("two") == Installation("two", "greeter")

    def test_annotations_are_the_librarys(self):
        told = "set hedgerow.dev/yield, then run `hedgerow plan` with HEDGEROW_DEBUG"

        assert renamed(told, "greeter") == (
            "set hedgerow.dev/yield, then run `greeter plan` with GREETER_DEBUG"
        )


class TestTyped:
    """A program is called as it was typed in all that tells to type it again."""

    @pytest.fixture
    def run(self, monkeypatch, capsys) -> Callable[..., Typed]:
        def run(path: str, *words: str, name: str = "greeter") -> Typed:
            monkeypatch.setattr(sys, "argv", [path, *words])
            monkeypatch.setattr(sys, "orig_argv", ["python", path, *words])
            with pytest.raises(SystemExit) as ended:
                operate((GREETER,), name=name)
            shown = capsys.readouterr()
            return int(ended.value.code or 0), shown.out, shown.err

        return run

    @pytest.mark.parametrize("name", ["greeter", "hedgerow"])
    @pytest.mark.parametrize(
        ("path", "called"),
        [
            ("my greeter.py", "python 'my greeter.py'"),
            ("/opt/hedgerow-ops/run.py", "python /opt/hedgerow-ops/run.py"),
            ("/usr/bin/greet", "greet"),
        ],
    )
    def test_hints_and_help_say_it_so(self, run, path, called, name):
        assert run(path, "plan", "--no", name=name)[2].endswith(f"see `{called} plan --help`\n")
        assert f"Usage: {called} [OPTIONS]" in run(path, "--help", name=name)[1]
        assert run(path, "plan", name=name)[2].endswith(f"see `{called} plan --help`\n")

    def test_one_that_was_run_as_no_file_is_called_by_its_name(self, run):
        assert run("-c", "plan", "--no")[2].endswith("see `greeter plan --help`\n")

    def test_a_module_is_called_as_one(self, run, monkeypatch):
        spec = ModuleSpec("pkg.__main__", None, origin="/x/pkg/__main__.py")
        monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)

        said = run("/x/pkg/__main__.py", "plan", "--no")[2]

        assert said.endswith("see `python -m pkg plan --help`\n")

    def test_the_remedies_of_errors_say_it_so(self):
        line, _ = explain(Missing("not served"), "greeter", "python /x/hedgerow-y.py")

        assert "run `python /x/hedgerow-y.py install` if the kind is one of greeter's own" in line

    def test_commands_in_a_text_are_told_from_the_name(self):
        text = 'hedgerow: `hedgerow run`, "$(hedgerow sandbox env)", `hedgerow`, hedgerow.dev/x'

        assert renamed(text, "greeter", "python a.py") == (
            'greeter: `python a.py run`, "$(python a.py sandbox env)", `greeter`, hedgerow.dev/x'
        )

    def test_the_commands_of_a_conflict_say_it_so(self):
        owner = ObjectRef(Greeting.api, "ns", "hi", "u")
        field = ContestedField(object="Greeting/hi", path=".status.x", manager="other")

        (remedy,) = remedies(owner, {}, field, program="greeter", command="python a.py")

        assert remedy.command.startswith("python a.py adopt Greeting")

    def test_the_demo_of_hedgerow_is_not_theirs(self, run, capsys):
        _, out, _ = run("greeter", "--help")
        assert all(f" {word} " not in out for word in ("demo", "promote", "rollback"))

        with pytest.raises(SystemExit):
            main(["--help"])
        assert "hedgerow demo" in capsys.readouterr().out


class TestCommandLine:
    @pytest.mark.parametrize("command", [(), ("run",), ("release",), ("plan",), ("completion",)])
    def test_its_help_is_about_itself(self, typed, command):
        code, out, _ = typed(*command, "--help")

        assert code == 0
        assert "greeter" in out
        assert not re.search(r"hedgerow(?!\.dev)|HEDGEROW_", out)

    def test_ours_is_as_it_was(self, typed, capsys):
        typed("run", "--help")
        with pytest.raises(SystemExit):
            main(("run", "--help"))

        shown = capsys.readouterr().out
        assert "HEDGEROW_LEASE_DURATION" in shown
        assert "greeter" not in shown

    def test_its_environment_variables_have_its_name(self, typed, monkeypatch):
        monkeypatch.setenv("HEDGEROW_LEASE_DURATION", "nonsense")
        monkeypatch.setenv("GREETER_LEASE_DURATION", "tomorrow")

        code, _, err = typed("run", "--log-format=human")

        assert code == 2
        assert err.startswith("greeter: 'tomorrow' is not valid: --lease-duration")
        assert "(GREETER_LEASE_DURATION is set)" in err

    def test_what_it_says_to_run_is_a_command_of_its_own(self, typed):
        code, _, err = typed("plan")

        assert code == 1
        assert err.startswith("greeter: ")
        assert "see `greeter plan --help`" in err

    def test_a_controller_of_hedgerow_is_none_of_its_own(self, typed):
        code, _, err = typed("run", "--controllers", "bluegreen")

        assert code == 2
        assert "no controller is called 'bluegreen'; there are: greeter" in err

    def test_its_version_tells_the_library(self, typed):
        assert typed("version")[1] == f"greeter (hedgerow {version()})\n"

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_a_shell_completes_it_by_its_name(self, theirs, capsys, shell):
        completion_command(shell)

        script = capsys.readouterr().out
        assert "greeter" in script
        assert "_GREETER_COMPLETE" in script
        assert "hedgerow" not in script.lower()

    def test_and_it_answers(self):
        program = (
            "import sys; sys.argv = ['greeter']; from library.greeter import *;"
            " main((GREETER,), name='greeter')"
        )
        asked = {
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "_GREETER_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_ARGS": "greeter manif",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        found = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip

        assert found.stdout.startswith("manifests"), found.stderr


class TestManifests:
    @pytest.fixture
    def objects(self, typed) -> list[Object]:
        code, out, err = typed("manifests", "--image", "greeter:1", "--instance", "two")
        assert (code, err) == (0, "")
        assert not re.search(r"hedgerow(?!\.dev)|HEDGEROW_", out.split("spec:", 1)[0])
        return list(from_yaml(out))

    def test_an_image_has_to_be_named(self, typed):
        code, out, err = typed("manifests")

        assert (code, out) == (2, "")
        assert "--image names the image whose entry point is greeter" in err

    def test_no_object_is_called_after_hedgerow(self, objects):
        names = {obj["metadata"]["name"] for obj in objects}
        kinds = {obj["kind"] for obj in objects}

        assert "ValidatingAdmissionPolicy" in kinds
        assert not [name for name in names if "hedgerow" in name]
        assert {"greeter-system", "greeter-two", "greeter-viewer", "greeter-two-children"} <= names

    def test_nor_has_one_its_label_or_namespace(self, objects):
        for obj in objects:
            meta = obj["metadata"]
            assert "hedgerow" not in str(meta.get("labels", {}).values())
            assert meta.get("namespace", "greeter-system") == "greeter-system"

    def test_what_it_runs_is_told_its_namespace_by_its_own_variable(self, objects):
        (deployment,) = [obj for obj in objects if obj["kind"] == "Deployment"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]

        assert (container["name"], container["image"]) == ("greeter", "greeter:1")
        assert container["env"][0]["name"] == "GREETER_SYSTEM_NAMESPACE"

    def test_its_rights_are_those_of_its_own_controller(self, objects):
        rules = [rule for obj in objects for rule in obj.get("rules", ())]
        granted = {name for rule in rules for name in rule.get("resources", ())}

        assert "configmaps" in granted
        assert "deployments" not in granted

    def test_the_policies_are_about_its_account_and_its_managers(self, objects):
        policies = [obj for obj in objects if obj["kind"] == "ValidatingAdmissionPolicy"]
        text = str(policies)

        assert "system:serviceaccount:greeter-system:greeter-two" in text
        assert 'startsWith("greeter-")' in text
        assert "hedgerow.dev/allow-claims" in text
        assert not re.search(r"hedgerow(?!\.dev)", text)

    def test_a_definition_is_a_part_of_it(self, objects):
        (crd,) = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]

        assert crd["metadata"]["labels"] == {"app.kubernetes.io/part-of": "greeter"}
        assert crd["spec"]["names"]["categories"] == ["greeter"]

    @pytest.mark.parametrize("words", [(), ("--greeter-loud",)])
    def test_an_option_without_a_value_is_a_switch(self, typed, words):
        given: list[Mapping[str, str]] = []

        def configured(options: Mapping[str, str]) -> Controller[Greeting]:
            given.append(options)
            return GREETER

        loud = replace(GREETER, options=ControllerOptions((Option("loud", "Greet."),), configured))
        _, out, _ = typed("manifests", "--image", "i", *words, registry=Registry((loud,)))

        assert ("--greeter-loud" in out) is bool(words)
        assert {"loud": "true"} in given or not words


class Unrenderable(Greeting):
    """A resource whose definition cannot be rendered."""

    api = hedgerow.ApiResource("odd.example.com/v1", "Odd", "odds")
    spec: Callable[[], int] = int


class TestDefinitions:
    def test_one_that_cannot_be_rendered_is_told_and_the_others_are_printed(self, typed):
        odd = hedgerow.Controller("odd", Unrenderable, GREETER.compose, owns=())

        code, out, err = typed("manifests", "--image", "i", registry=Registry((odd, GREETER)))

        assert code == 1
        (line,) = err.splitlines()
        assert line.startswith("greeter: odds.odd.example.com is left out, its definition cannot")
        crds = [obj for obj in from_yaml(out) if obj["kind"] == "CustomResourceDefinition"]
        assert [crd["spec"]["names"]["kind"] for crd in crds] == ["Greeting"]


class TestLags:
    @pytest.mark.parametrize("name", ["loop_lag", "reconcile_duration", "my-lag", "", "Late"])
    def test_one_with_the_name_of_another_metric_or_none_is_refused(self, name):
        late = hedgerow.Controller(
            "late", Greeting, GREETER.compose, owns=(), lag=Lag(name, "h", lambda _: None)
        )

        with pytest.raises(ValueError, match=f"the controller late has a lag '{name}'"):
            Registry((late,))

    def test_so_is_one_with_the_name_of_another_lag(self):
        lag = next(one.lag for one in REGISTRY.controllers if one.lag)
        late = hedgerow.Controller("late", Greeting, GREETER.compose, owns=(), lag=lag)

        with pytest.raises(ValueError, match="or that of another one"):
            Registry((*REGISTRY.controllers, late))

    def test_the_names_are_all_that_there_are(self):
        seconds = {
            metric.name.removeprefix("hedgerow_")
            for metric in Meters().registry.collect()
            if metric.name.endswith("_seconds")
        }

        assert seconds == set(DurationMetric)
