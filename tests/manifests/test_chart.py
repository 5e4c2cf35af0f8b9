"""The chart's templates: how what differs between controllers becomes one text."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.deploy.helm.superposing import Conditions, superposed
from hedgerow.deploy.helm.template import Only, Text, Value, filled, written
from hedgerow.encoding import decode
from hedgerow.generate import OPENAPI as DOCUMENT
from hedgerow.generate import ROOT, generated

A, B, C = "$a", "$b", "$c"
EVERY = Conditions((A, B, C))
BY_HAND = {
    "NOTES.txt",
    "_helpers.tpl",
    "left-by-the-operator.yaml",
    "test.yaml",
}


def of(a: Any, b: Any, c: Any, together: Any) -> Any:
    return superposed({A: a, B: b, C: c}, together, EVERY)


class TestSuperposing:
    def test_what_is_always_so_has_no_condition(self):
        assert of({"x": 1}, {"x": 1}, {"x": 1}, {"x": 1}) == {"x": 1}

    def test_a_key_is_there_for_those_that_have_it(self):
        both = {"x": 1, "y": {"z": 2}}

        found = of({"x": 1}, both, {"x": 1}, both)

        assert found == {"x": 1, "y": Only(B, {"z": 2})}

    def test_items_are_known_by_their_names_and_ordered_as_all_together(self):
        one, two = {"name": "one", "value": "1"}, {"name": "two"}

        found = of([two], [one, two], [one], [one, two])

        assert found == [Only(f"or {B} {C}", one), Only(f"or {A} {B}", two)]

    def test_a_rule_that_is_folded_together_is_that_of_each(self):
        found = of([{"verbs": ["get"]}], [{"verbs": ["list"]}], [], [{"verbs": ["get", "list"]}])

        assert found == [Only(A, {"verbs": ["get"]}), Only(B, {"verbs": ["list"]})]

    def test_alternatives_stand_beside_each_other(self):
        found = of("f(x, (a))", "f(x, (b && (c)))", "f(x, false)", "f(x, (a) || (b && (c)))")

        assert found == Text(
            'f(x, {{ $or := "" -}}\n'
            '{{ if $a }}{{ $or }}(a){{ $or = " || " }}{{ end }}{{- "" -}}\n'
            '{{ if $b }}{{ $or }}(b && (c)){{ $or = " || " }}{{ end }}{{- "" -}}\n'
            "{{ if not $or }}false{{ end -}}\n"
            ")"
        )

    def test_alternatives_without_parentheses_follow_those_that_are_always_there(self):
        found = of("x || a", "x || b", "x", "x || a || b")

        assert found == Text("x{{ if $a }} || a{{ end }}{{ if $b }} || b{{ end }}")

    def test_of_two_texts_that_of_all_wins(self):
        found = of("in [1]", "in [2]", "in [1]", "in [2]")

        assert found == Text("{{ if $b }}in [2]{{ else }}in [1]{{ end }}")

    @pytest.mark.parametrize(
        ("a", "b", "c", "together"),
        [
            (1, 2, 1, 2),
            ({"x": 1}, {}, {}, {}),
            ("a", "b", "c", "abc"),
            ("a", "b", "c", "c"),
        ],
    )
    def test_what_cannot_be_expressed_is_an_error(self, a, b, c, together):
        with pytest.raises(ValueError, match=r"differs|single variants|no condition"):
            of(a, b, c, together)


class TestWriting:
    def test_conditions_texts_and_places_become_actions(self):
        made = {
            "a": "zz-here-zz",
            "b": "x zz-here-zz",
            "c": [Only("$c", {"d": 1, "e": ["{{"]})],
            "f": Text("{{ if $f }}g{{ end }}"),
            "h": Value("$h"),
            "i": Value("$i", is_block=True),
            "j": {},
        }

        assert written([Only("$all", made)], {"here": ".Here"}) == (
            "{{- if $all }}\n"
            "---\n"
            "a: {{ .Here | quote }}\n"
            "b: x {{ .Here }}\n"
            "c:{{ if not (or ($c)) }} []{{ end }}\n"
            "{{- if $c }}\n"
            "- d: 1\n"
            "  e:\n"
            "  - |-\n"
            '    {{ "{{" }}\n'
            "{{- end }}\n"
            "f: |-\n"
            "  {{ if $f }}g{{ end }}\n"
            "h: {{ $h }}\n"
            "i: {{- toYaml $i | nindent 2 }}\n"
            "j: {}\n"
            "{{- end }}\n"
        )

    def test_a_place_without_an_expression_is_an_error(self):
        with pytest.raises(KeyError, match="there"):
            filled("a: zz-there-zz", {})


def test_every_template_is_generated_or_known_to_be_written_by_hand():
    made = generated(decode((ROOT / DOCUMENT).read_bytes()))
    templates = ROOT / "manifests" / "chart" / "templates"
    found = {path.relative_to(ROOT) for path in templates.rglob("*") if path.is_file()}

    assert {path.name for path in found - made.keys()} == BY_HAND
