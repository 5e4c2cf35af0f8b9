"""Objects as YAML: what is read is what kubectl reads, and no text stands for more than it is."""

from __future__ import annotations

import json
import time

import pytest

from hedgerow.deploy.manifest import (
    DEEPEST,
    LARGEST,
    ManifestError,
    from_yaml,
    objects_in,
    to_yaml,
)

LAUGHS = "a0: &a0 [lol, lol]\n" + "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)
)
MERGES = "a0: &a0 {x: 1, y: 2}\n" + "\n".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 30)
)
LONG = "a: &a " + "x" * 100_000 + "\nb: [" + ", ".join(["*a"] * 1000) + "]"
MANY = "\n---\n".join(["{a: &a " + "x" * 20_000 + ", b: [" + ", ".join(["*a"] * 100) + "]}"] * 50)
DEEPENED = "- &a0 []\n" + "\n".join(f"- &a{n} [*a{n - 1}]" for n in range(1, 101))


class TestRead:
    def test_what_is_written_is_read(self):
        objects = ({"kind": "A", "n": 1, "b": True, "l": [None, "x"]}, {"kind": "B", "f": 1.5})

        assert from_yaml(to_yaml(*objects)) == objects

    def test_times_stay_as_they_are_written_and_keys_are_strings(self):
        text = "{2026-01-01: 2026-01-01T00:00:00Z, 2: a, 1.5: b, 1: c, true: d, 0: e, no: f}"

        [found] = from_yaml(text)
        assert found == {
            "2026-01-01": "2026-01-01T00:00:00Z", "2": "a", "1.5": "b", "1": "c", "true": "d",
            "0": "e", "false": "f",
        }  # fmt: skip

    @pytest.mark.parametrize("between", ["\n", "\r\n", " \n\n", "\n---\n"])
    def test_json_documents_may_follow_each_other(self, between):
        text = json.dumps({"a": "}\n{"}) + between + json.dumps({"b": {}}, indent=2)

        assert from_yaml(text) == ({"a": "}\n{"}, {"b": {}})

    @pytest.mark.parametrize(
        ("word", "value"),
        [
            ("y", True), ("N", False), ("on", True), ("Off", False), ("yy", "yy"), ("nO", "nO"),
            ("010", 8), ("0o17", 15), ("0x1F", 31), ("-0b11", -3), ("08", 8), ("1_000", 1000),
            ("1e3", 1000), ("1.0", 1), (".5", 0.5), ("1e30", 1e30),
            ("12:30", "12:30"), ("1.2.3", "1.2.3"), ("=", "="), ("~", None), ("Null", None),
            ("2026-01-01", "2026-01-01"), ("18446744073709551616", 18446744073709551616),
            ("!!float 5", 5), ("'y'", "y"), ("!!binary |\n  aGVs\n  bG8=", "hello"),
        ],
    )  # fmt: skip
    def test_a_plain_word_means_what_it_means_to_kubectl(self, word, value):
        [found] = from_yaml(f"- {word}")[0]

        assert found == value
        assert type(found) is type(value)

    @pytest.mark.parametrize("word", ["y", "No", "1e3", "0o17", "08", "1_0", "1e999", "null", ".5"])
    def test_a_text_is_written_so_that_it_is_read_as_text(self, word):
        assert from_yaml(to_yaml({"a": word})) == ({"a": word},)

    def test_what_only_begins_like_a_number_needs_no_quotes(self):
        assert to_yaml({"a": "50m", "b": "0.1.0", "c": "no-thing"}) == (
            "a: 50m\nb: 0.1.0\nc: no-thing\n"
        )

    def test_json_and_empty_documents_are_read(self):
        assert from_yaml('---\n---\n{"a": [1]}') == (None, {"a": [1]})
        assert from_yaml("") == ()

    def test_aliases_and_merges_of_a_usual_size_are_read(self):
        assert from_yaml("a: &a {x: 1}\nb: {<<: *a, z: 2}\nc: [*a, *a]") == (
            {"a": {"x": 1}, "b": {"x": 1, "z": 2}, "c": [{"x": 1}, {"x": 1}]},
        )

    def test_as_many_levels_as_are_allowed_are_read(self):
        [found] = from_yaml("[" * DEEPEST + "]" * DEEPEST)

        assert str(found) == "[" * DEEPEST + "]" * DEEPEST

    @pytest.mark.parametrize("text", ["{0}\n---\n{1}", "kind: List\nitems:\n- {0}\n- {1}\n"])
    def test_the_bound_is_that_of_an_object_not_of_a_text(self, text):
        objects = (f"{{kind: A, a: {letter * (LARGEST * 9 // 10)}}}" for letter in "xy")
        whole = text.format(*objects)

        assert len(whole) > LARGEST
        assert [found["a"][0] for found in objects_in("f", whole)] == ["x", "y"]

    def test_a_text_without_aliases_is_never_too_much(self):
        words = ["x" * 99] * (LARGEST // 100)

        assert from_yaml("\n".join(f"- {word[:97]}" for word in words))[0][0] == "x" * 97


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("a: [", "line 2: did not find expected node content"),
            ("a: *b", "line 1: found undefined alias"),
            ("x" * (LARGEST + 1), "line 1: the object is larger than 3 MiB"),
            ("kind: a\n---\na: " + "x" * LARGEST, "line 3: the object is larger than 3 MiB"),
            ("items: [{a: 1},\n{a: " + "x" * LARGEST + "}]", "line 2: the object is larger than 3"),
            ("a: &a [*a]", "line 1: it is nested within itself"),
            ("k: 1\na: &a\n  b: {c: *a}", "line 2: it is nested within itself"),
            ("[" * 100_000 + "]" * 100_000, "line 1: it is nested more than 100 levels deep"),
            ("{a: " * 30_000 + "}" * 30_000, "line 1: it is nested more than 100 levels deep"),
            ("- " * 101 + "x", "line 1: it is nested more than 100 levels deep"),
            (DEEPENED, "line 101: it is nested more than 100 levels deep"),
            ("? [a]\n: b", "line 1: the key ['a'] is no string"),
            ("a: !!map x", "line 1: expected a mapping node"),
            ("~: b", "line 1: the key None is no string"),
            ("a: !!binary x", "line 1: 'x' is no text in base64"),
            ("a: !!binary aGVs bG8=", "line 1: 'aGVs bG8=' is no text in base64"),
            ("a: !!binary /w==", "line 1: '/w==' is no text in base64"),
            ("{a: 1}\n{a: [}", "line 2: did not find expected node content"),
            ("a: !!set {x}", "could not determine a constructor for the tag"),
            ("a: !!python/object:os.system x", "could not determine a constructor for the tag"),
            ("a: " + "9" * 5000, "a value cannot be read"),
            ("a: .inf", "a value cannot be read: .inf is no number in JSON"),
            ("a: !!int x", "line 1: 'x' is no number"),
            ("a: !!bool x", "line 1: 'x' is neither true nor false"),
            ("\x00", "unacceptable character"),
        ],
        ids=lambda text: text[:30],
    )
    def test_what_cannot_be_read_is_told_in_one_line(self, text, told):
        with pytest.raises(ManifestError) as met:
            from_yaml(text)

        assert told in str(met.value)
        assert "\n" not in str(met.value)

    @pytest.mark.parametrize("schedule", ["*/5 * * * *", "* * * * *", "@daily"])
    def test_a_schedule_that_is_not_quoted_is_told_to_be(self, schedule):
        with pytest.raises(ManifestError, match=r"^line 3: .*; quote the schedule, as in "):
            from_yaml(f"kind: CronJob\nspec:\n  schedule: {schedule}\n")

    def test_what_else_yaml_stumbles_over_has_nothing_to_do_with_it(self):
        with pytest.raises(ManifestError) as met:
            from_yaml("kind: CronJob\nspec:\n  note: *x\n")

        assert "quote" not in str(met.value)

    @pytest.mark.parametrize(
        "text", [LAUGHS, MERGES, LONG, MANY], ids=["laughs", "merges", "long", "many"]
    )
    def test_aliases_that_stand_for_too_much_are_refused_at_once(self, text):
        began = time.monotonic()

        with pytest.raises(ManifestError, match="aliases stand for more than"):
            from_yaml(text)

        assert time.monotonic() - began < 5
