"""The chart: how what differs between controllers becomes one text, and which values it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from hedgerow.deploy.helm.superposing import Conditions, superposed
from hedgerow.deploy.helm.template import Only, Text, Value, filled, written
from hedgerow.encoding import decode
from hedgerow_testing.generate import OPENAPI as DOCUMENT
from hedgerow_testing.generate import ROOT, generated

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


def overlaid(values: Any, given: Any) -> Any:
    """Return values with those that were given over them, as Helm does: null removes one."""
    if not (isinstance(values, dict) and isinstance(given, dict)):
        return given
    both = values | {name: overlaid(values.get(name), one) for name, one in given.items()}
    return {name: one for name, one in both.items() if name not in given or one is not None}


class TestValues:
    CHART = ROOT / "manifests" / "chart"
    DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))

    SCHEMA = decode((CHART / "values.schema.json").read_bytes())

    def errors(self, given: Any) -> list[str]:
        found = Draft7Validator(self.SCHEMA).iter_errors(overlaid(self.DEFAULTS, given))
        return [f"{'/'.join(map(str, one.absolute_path))}: {one.message}" for one in found]

    def test_those_of_the_chart_are_valid(self):
        assert self.errors({}) == []

    @pytest.mark.parametrize(
        ("values", "named"),
        [
            ({"replica": 2}, "replica"),
            ({"replicas": "2"}, "replicas"),
            ({"replicas": 0}, "replicas"),
            ({"replicas": None}, "'replicas'"),
            ({"shards": True}, "shards"),
            ({"shards": 0}, "shards"),
            ({"shards": 101}, "shards"),
            ({"image": {"repo": "x"}}, "repo"),
            ({"image": None}, "'image'"),
            ({"image": {"repository": None}}, "'repository'"),
            ({"image": {"repository": "hedgerow:1.2"}}, "image/repository"),
            ({"image": {"repository": "registry.example:5000"}}, "image/repository"),
            ({"image": {"tag": "a b"}}, "image/tag"),
            ({"image": {"digest": "latest"}}, "image/digest"),
            ({"controllers": ["bluegreen", "redgreen"]}, "controllers/1"),
            ({"controllers": "bluegreen"}, "controllers"),
            ({"secretsync": {"namespace": "a b"}}, "secretsync/namespace"),
            ({"secretsync": None}, "'secretsync'"),
            ({"secretsync": {"colour": "red"}}, "colour"),
            ({"namespaces": ["Shop"]}, "namespaces/0"),
            ({"webhooks": "yes"}, "webhooks"),
            ({"policy": {"enabled": True}}, "policy"),
            ({"crds": {"keep": False}}, "keep"),
            ({"crds": None}, "'crds'"),
            ({"existingServiceAccount": "a/b"}, "existingServiceAccount"),
            ({"existingServiceAccount": "hedgerow"}, "existingServiceAccount"),
            ({"resources": {"limit": {}}}, "limit"),
            ({"resources": {"limits": {"cpu": -0.5}}}, "resources/limits/cpu"),
            ({"resources": {"limits": {"memory": "much"}}}, "resources/limits/memory"),
            ({"environment": {"HEDGEROW_LOGFORMAT": "json"}}, "HEDGEROW_LOGFORMAT"),
            ({"extraLabels": {"app.kubernetes.io/name": "x"}}, "extraLabels"),
            ({"extraLabels": {"app.kubernetes.io/component": "x"}}, "extraLabels"),
            (
                {"extraLabels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}},
                "extraLabels",
            ),
            ({"extraLabels": {"team": 'a"b'}}, "extraLabels/team"),
            ({"nodeSelector": {"disk": 1}}, "nodeSelector/disk"),
            ({"tolerations": [{"keys": "spot"}]}, "keys"),
        ],
    )
    def test_a_wrong_one_is_refused_by_its_name(self, values, named):
        [error] = self.errors(values)

        assert named in error

    def test_the_guide_names_the_variables_that_there_are(self):
        guide = (ROOT / "docs/guides/helm.md").read_text("utf-8")
        (row,) = re.findall(r"^\| `environment` \|.*$", guide, re.MULTILINE)

        known = self.SCHEMA["properties"]["environment"]["properties"]
        assert sorted(re.findall(r"`(HEDGEROW_\w+)`", row)) == sorted(known)

    def test_no_map_takes_what_it_does_not_know(self):
        open_ones = list(open_maps(self.SCHEMA))

        # Helm's own, which charts of charts share.
        assert open_ones == ["global"]


def open_maps(schema: Any, at: str = "") -> Iterator[str]:
    """Yield where a schema lets a map have any keys."""
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        yield at
    for several in ("properties", "patternProperties"):
        for name, below in schema.get(several, {}).items():
            yield from open_maps(below, f"{at}.{name}".strip("."))
    yield from open_maps(schema.get("items"), at)


def test_every_template_is_generated_or_known_to_be_written_by_hand():
    made = generated(decode((ROOT / DOCUMENT).read_bytes()))
    templates = ROOT / "manifests" / "chart" / "templates"
    found = {path.relative_to(ROOT) for path in templates.rglob("*") if path.is_file()}

    assert {path.name for path in found - made.keys()} == BY_HAND
