"""The public library: its names, and what they are."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hedgerow
from hedgerow import app
from hedgerow.registry import Registry
from library import greeter
from library.greeter import GREETER, Greeting
from support.operator.registered import ALL

LISTED = {
    "CONFINED", "KEEP_ALL", "PORT_MISSING", "ApiResource", "Apply", "BuiltIn", "Column",
    "Condition", "ConfigMap", "ContributesTo", "Contribution", "Controller", "ControllerOptions",
    "Copy", "Create", "CustomResource", "Definition", "Deployment", "Desired", "EndpointSlice",
    "Field", "FieldError", "Holder", "HorizontalPodAutoscaler", "Job", "Keep", "Key", "Lag",
    "Model", "Namespace", "Notice", "Object", "ObjectMeta", "Observed", "Option", "Pod",
    "PodDisruptionBudget", "Relation", "Resource", "Rule", "Scale", "Schedule", "ScheduleError",
    "Secret", "Select", "Service", "Settings", "SourceNotice", "StatefulSet", "Status", "Time",
    "View", "Word", "__version__", "answers", "applied", "condition", "degraded", "digest",
    "extract", "fixed", "held_items", "holders", "instant", "is_manager_of", "json_text",
    "list_map", "main", "missing_port", "named_after", "named_by", "printable", "quantity",
    "read_json", "ready", "replicas_of", "rules", "run", "selector_text", "stalled", "timetable",
    "unprivileged", "unready", "waits_for", "why_stuck",
}  # fmt: skip
"""What others import: a name that goes, or comes, is a decision."""


ASKED = hedgerow.ApiResource("greeter.example.com/v1", "Asked", "askeds")


class TestGuide:
    def test_its_program_is_the_one_that_is_tested(self):
        guide = (Path(__file__).parents[2] / "docs/guides/library.md").read_text("utf-8")
        program = guide.partition("<!-- greeter -->")[2].partition("```python\n")[2]

        assert program.partition("```\n")[0] == Path(greeter.__file__).read_text("utf-8")


class TestNames:
    def test_the_list_is_what_it_is(self):
        assert set(hedgerow.__all__) == LISTED

    def test_another_one_is_not(self):
        with pytest.raises(AttributeError, match="nonsense"):
            _ = hedgerow.nonsense

    def test_importing_it_imports_nothing_else(self):
        program = (
            "import hedgerow, sys; print([m for m in sys.modules if m.startswith('hedgerow')])"
        )
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

        assert found.stdout.decode().strip() == "['hedgerow']"


class TestOurs:
    def test_ours_are_found_by_their_modules(self):
        ours = ("bluegreen", "cronjob", "guestbook", "memcached", "scaler", "secretsync")
        assert ALL.names == ours


class TestRegistry:
    @pytest.mark.parametrize(("chosen", "controllers"), [(("nope",), (GREETER,)), ((), ())])
    def test_nothing_runs_without_the_controllers_that_are_chosen(
        self, monkeypatch, chosen, controllers
    ):
        monkeypatch.setattr(app, "configure", lambda *_, **__: None)
        with pytest.raises(ValueError, match="no controller is called"):
            hedgerow.run(hedgerow.Settings(controllers=chosen), controllers)

    def test_a_name_that_there_is_not_is_an_error(self):
        with pytest.raises(KeyError):
            ALL.chosen(["nobody"])

    def test_one_that_is_opt_in_is_chosen_by_its_name_alone(self):
        asked = replace(GREETER, name="asked", resource=type("Asked", (Greeting,), {"api": ASKED}))
        asked = replace(asked, opt_in=True)
        known = Registry((asked, GREETER))

        assert known.chosen(()) == (GREETER,)
        assert known.chosen(("asked",)) == (asked,)
        assert known.limited().resources == (Greeting,)
        assert known.limited(("asked",)).resources == (asked.resource,)
