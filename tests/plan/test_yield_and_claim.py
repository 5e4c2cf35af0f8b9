from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.fields.paths import path_of
from hedgerow.plan.field_patterns import LONGEST
from hedgerow.plan.yield_and_claim import (
    CLAIM,
    MOST,
    YIELD,
    FieldPolicy,
    FieldPolicyError,
    field_policy_of,
    parse,
)

IMAGE = '.spec.template.spec.containers[name="web"].image'
PORT = '.spec.ports[port=80,protocol="TCP"].name'


def place(*names: str) -> tuple[str, ...]:
    """Return the steps to a field; list items are spelled as elements."""
    return tuple(name if name[:2] in ("k:", "v:") else f"f:{name}" for name in names)


@dataclass(frozen=True)
class Case:
    """A pattern of paths, what it covers and what it does not."""

    pattern: str
    covers: tuple[str, ...]
    spares: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.pattern


CASES = [
    Case("spec.replicas", (".spec.replicas",), (".spec.replicas.x", ".spec", ".spec.replicasx")),
    Case(".spec.replicas", (".spec.replicas",), ("spec.replicas", ".xspec.replicas")),
    Case("spec.*", (".spec.a",), (".spec.a.b", ".spec", ".spec.a[x=1]")),
    Case("spec.*.*", (".spec.a.b",), (".spec.a", ".spec.a.b.c")),
    Case("spec.**", (".spec.a", IMAGE, ".spec[x=1]"), (".spec", ".status.a", ".specs.a")),
    Case("**", (".spec", IMAGE, PORT)),
    Case("spec.ports.**", (".spec.ports[port=80]", PORT), (".spec.ports", ".spec.a")),
    Case("spec.*.**", (".spec.a.b", ".spec.a[n=1].c"), (".spec.a", ".spec[n=1].a")),
    Case("spec.ports[*].**", (PORT, ".spec.ports[port=80].a.b"), (".spec.ports[port=80]",)),
    Case(IMAGE, (IMAGE,), (IMAGE.replace("web", "wab"),)),
    Case(IMAGE.replace('[name="web"]', "[*]"), (IMAGE,), (".spec.template.spec.containers",)),
    Case(PORT, (PORT,), (PORT.replace("80", "81"), PORT.replace("TCP", "UDP"))),
    Case("spec.ports[*].name", (PORT,), (".spec.ports.name",)),
    Case('metadata.finalizers[="a/b"]', ('.metadata.finalizers[="a/b"]',)),
    Case("x[=5]", (".x[=5]",), (".x[=6]", '.x[="5"]')),
    Case("x[on=true,n=-1]", (".x[n=-1,on=true]",)),
    Case('x[name="a]b"].c', ('.x[name="a]b"].c',)),
    Case("x[*].c", ('.x[name="a]b\\"["].c',), ('.x[name="a"].b[name="x"].c',)),
    Case('x[name="a, ]b;c"]', ('.x[name="a, ]b;c"]',)),
    Case('x[name="\\""]', ('.x[name="\\""]',), ('.x[name=""]',)),
    Case("metadata.labels.app.kubernetes.io/name", (".metadata.labels.app.kubernetes.io/name",)),
    Case("a+b", (".a+b",), (".aab",)),
    Case("größe", (".größe",)),
    Case(
        "spec.template.spec.containers[*].resources.limits.*",
        (
            '.spec.template.spec.containers[name="web"].resources.limits.cpu',
            '.spec.template.spec.containers[name="web"].resources.limits.memory',
        ),
        ('.spec.template.spec.containers[name="web"].resources.requests.cpu',),
    ),
    Case("a.*.c[*]", (".a.b.c[n=1]",), (".a.c[n=1]", ".a.b.c", ".a.b.b.c[n=1]")),
]


class TestPaths:
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_a_pattern_covers_what_it_says(self, case):
        (term,) = parse(f"Deployment/x: {case.pattern}")

        for path in case.covers:
            assert term.covers("Deployment", "x", path), path
        for path in case.spares:
            assert not term.covers("Deployment", "x", path), path

    @pytest.mark.parametrize(
        "text",
        [
            "", ".", "..", "a..b", "a.", "a.[*]", "a b", "a[", "a]", "a[]", "a[x]", 'a[x="]',
            "a[x=1,]", "a[=]", "a[*]*", '"a"', "a:b", "a=b", "a[*", 'a[x="y"', "a\tb", "[*]a]",
            "a[*]b", "a[x=1]*",
        ],
    )  # fmt: skip
    def test_what_is_no_path_is_refused(self, text):
        with pytest.raises(FieldPolicyError, match="path"):
            list(parse(f"Deployment/x: {text}"))


STEP = "; * stands for a whole name, as in spec.*"
END = "; ** stands only at the end, as in spec.**; before it, write each step, or * for any"
KEYS = """; a list item is named by its keys: [name="web"], or [*] for all of them"""
NO_ENTRIES = (
    "Deployment: a", "Deployment/x a", "Deployment/X: a", "/x: a", "Deployment/: a",
    "apps/Deployment/x: a", "a", ": a", "De*/x: a", "Deployment/x\n: a",
)  # fmt: skip
REFUSED = {
    **{
        f"A/x: {path}": f"'{path}' is no path; it breaks at '{at}'{END}"
        for path, at in [
            ("**.image", "**.image"), ("spec.**.image", "**.image"), ("**.**", "**.**"),
            ("spec**", "spec**"), ("spec.re**", "re**"), ("spec.***", "***"),
            ("spec.ports[*]**", "**"),
        ]
    },
    **{f"A/x: spec.{name}, spec.a": STEP for name in ("re*s", "re*", "*s", "*a*", "app.io/*")},
    "Deployment/x: spec.a, spec.b..c": "'spec.b..c' is no path; it breaks at '.c'",
    "Deployment/x: spec.containers[0].image": f" it breaks at '[0].image'{KEYS}",
    "A/x: a,\nB/x: b": "'B/x: b' is no path",
    **{
        f"{kind}/x: spec.replicas": f"'{kind}' is no kind: write it as a manifest does"
        for kind in ("deployment", "deploy", "deployments.apps")
    },
    **dict.fromkeys(NO_ENTRIES, "is not KIND/NAME: PATH, as in Deployment"),
    **{
        f"Job/{name}: a": ": * stands for a whole name: write Job/*,"
        for name in ("demo*", "*-deployment", "a*b*c", "**")
    },
}  # fmt: skip


@pytest.mark.parametrize(("text", "told"), REFUSED.items(), ids=REFUSED)
def test_what_is_refused_is_told_with_what_to_write_instead(text, told):
    with pytest.raises(FieldPolicyError) as refused:
        list(parse(text))

    assert told in str(refused.value)


class TestSteps:
    """What cannot be told from a printed path: where a key with dots begins and ends."""

    LABEL = ("metadata", "labels", "app.kubernetes.io/name")

    @pytest.mark.parametrize(
        ("pattern", "covered"),
        [
            ("metadata.labels.*", True),
            ("metadata.*.*", True),
            ("metadata.labels.app.kubernetes.io/name", True),
            ("*.*.app.kubernetes.io/name", True),
            ("metadata.labels.app.**", False),
            ("metadata.labels.app.kubernetes", False),
            ("metadata.labels.app", False),
            ("metadata.*", False),
            ("metadata.labels.*.*.*", False),
        ],
    )
    def test_a_star_is_one_step_whatever_is_in_it(self, pattern, covered):
        (term,) = parse(f"A/x: {pattern}")

        assert term.covers("A", "x", place(*self.LABEL)) is covered

    def test_a_star_covers_neither_an_item_nor_what_is_in_it(self):
        (term,) = parse("A/x: spec.*")

        assert not term.covers("A", "x", place("spec", "ports", 'k:{"port":80}'))

    @pytest.mark.parametrize("keys", ['port=80,protocol="TCP"', 'protocol="TCP",port=80'])
    def test_the_keys_of_an_item_come_in_any_order(self, keys):
        (term,) = parse(f"A/x: spec.ports[{keys}].nodePort")

        assert term.covers("A", "x", '.spec.ports[port=80,protocol="TCP"].nodePort')
        field_path = place("spec", "ports", 'k:{"port":80,"protocol":"TCP"}', "nodePort")
        assert term.covers("A", "x", field_path)

    @given(st.lists(st.sampled_from(["f:a.b", "f:a", 'k:{"n":"x]\\""}', 'k:{"p":1}', 'v:"é.f"'])))
    def test_places_are_covered_by_what_is_printed_of_them(self, field_path):
        path = path_of(("f:top", *field_path))
        (term,) = parse(f"*/*: {path}")

        assert term.covers("Any", "thing", ("f:top", *field_path))
        assert term.covers("Any", "thing", path)

    def test_what_tells_steps_apart_is_no_step_of_its_own(self):
        (term,) = parse("A/x: data.*.b")

        assert not term.covers("A", "x", ("f:data", "f:a\0b"))


class TestLongNames:
    """A name of more than 4096 characters is covered by what covers any name."""

    LONG = place("data", "x" * LONGEST + "xy.z" + "x" * LONGEST + "xy")

    @pytest.mark.parametrize("pattern", ["data.*", "data.**", "**", "*.*"])
    def test_it_is_any_name(self, pattern):
        (term,) = parse(f"A/x: {pattern}")

        assert term.covers("A", "x", self.LONG)

    def test_an_item_is_covered_by_a_star_and_not_by_its_keys(self):
        for length, named in ((1000, True), (2000, False)):
            item = f'[name="{"x" * length}"]'
            place_of_item = place("spec", f'k:{{"name":"{"x" * length}"}}')
            star, keys = parse(f"A/x: spec[*], spec{item}")

            assert star.covers("A", "x", place_of_item)
            assert keys.covers("A", "x", place_of_item) is named


class TestObjects:
    @pytest.mark.parametrize(
        ("entry", "kind", "name", "covered"),
        [
            ("Deployment/x", "Deployment", "x", True),
            ("Deployment/x", "Deployment", "xx", False),
            ("Deployment/x", "Service", "x", False),
            ("*/x", "Service", "x", True),
            ("Deployment/*", "Deployment", "any.thing-0", True),
            ("Deployment/a.b", "Deployment", "axb", False),
        ],
    )
    def test_kind_and_name_are_meant_as_written(self, entry, kind, name, covered):
        (term,) = parse(f"{entry}: a")

        assert term.covers(kind, name, ".a") is covered


QUOTED = 'A/x: y[a="1;2\\",]",b=2]'
TEXTS = {
    " Deployment/x: a, b ;\n\n Service/*: c;": [
        "Deployment/x: a",
        "Deployment/x: b",
        "Service/*: c",
    ],
    **{
        text: ["A/x: a", "A/x: b", "B/x: c"]
        for text in (
            "A/x:\n  a, b\nB/x: c",
            "A/x: a,\n  b\nB/x:\n\n  c\n",
            "A/x:\r\n  a,\r\n  b\r\nB/x: c\r\n",
            "A/x:  \n a ,\n\n b;\nB/x: c",
        )
    },
    'A/x: y[a="b:"]\nB/x: z': ['A/x: y[a="b:"]', "B/x: z"],
    f"{QUOTED}, z; B/x: w": [QUOTED, "A/x: z", "B/x: w"],
    "": [],
    " ;\n; ": [],
}


class TestTexts:
    @pytest.mark.parametrize(("text", "terms"), TEXTS.items(), ids=map(repr, TEXTS))
    def test_what_stands_apart_and_what_goes_on_in_the_next_line(self, text, terms):
        found = list(parse(text))

        assert [term.text for term in found] == terms
        assert [f"{term.kind}/{term.name}" for term in found] == [
            text.partition(": ")[0] for text in terms
        ]

    def test_as_many_as_may_be_and_no_more(self):
        most = ",".join(["a"] * MOST)

        assert len(list(parse(f"A/x: {most}"))) == MOST
        with pytest.raises(FieldPolicyError, match="more than 64"):
            list(parse(f"A/x: {most},a"))


MARKS = (
    ("ownerReferences",), ("ownerReferences", 'k:{"uid":"u"}'), ("finalizers", 'v:"x"'),
    ("labels", "hedgerow.dev/controller"), ("annotations", "hedgerow.dev/status"),
)  # fmt: skip
"""Below metadata."""
IDENTITY = (
    ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid"),
    ("spec", "selector"), ("spec", "selector", "matchLabels", "a"), ("selector",),
    ("spec", "podSelector"), ("spec", "podSelector", "matchLabels", "a"),
    ("spec", "ingress", 'v:{"from":[]}', "namespaceSelector"),
    ("spec", "scaleTargetRef", "name"), ("spec", "serviceName"),
    ("spec", "containers", 'k:{"name":"x"}', "name"),
    ("spec", "ports", 'k:{"port":80,"protocol":"TCP"}', "protocol"),
)  # fmt: skip
LOOKS_LIKE_THESE = (
    ("metadata", "labels", "hedgerow.dev/other"), ("metadata", "annotations"),
    ("metadata", "labels", "selector"), ("metadata", "annotations", "selector"),
    ("spec", "nodeSelector", "a"), ("spec", "nodeSelector", "selector"),
    ("spec", "template", "metadata", "labels", "selector"),
    ("spec", "template", "metadata", "name"),
    ("spec", "ports", 'k:{"port":80,"protocol":"TCP"}', "name"),
    ("spec", "containers", 'k:{"name":"x"}', "env", 'k:{"name":"A"}', "value"),
    ("spec", "rules", "serviceName"), ("data", "podSelector"),
)  # fmt: skip


class TestAnnotations:
    def test_both_are_read_and_their_absence_is_no_term(self):
        assert field_policy_of({}) == field_policy_of({"other": "x"}) == FieldPolicy()
        found = field_policy_of({YIELD: "A/x: a", CLAIM: "A/x: b"})

        assert found.yielded("A", "x", ("f:a",))
        assert not found.yielded("A", "x", ("f:b",))
        assert found.claimed("A", "x", ("f:b",))
        assert not found.claimed("A", "x", ("f:a",))

    def test_what_is_yielded_is_not_claimed(self):
        assert not field_policy_of({YIELD: "*/*: a", CLAIM: "A/x: a"}).claimed("A", "x", ("f:a",))

    @pytest.mark.parametrize(
        ("path", "claimed", "yielded"),
        [
            *((("metadata", *path), False, False) for path in MARKS),
            *((path, False, True) for path in IDENTITY),
            *((path, True, True) for path in LOOKS_LIKE_THESE),
        ],
    )
    def test_what_makes_a_child_ours_is_neither_claimed_nor_yielded_and_identity_not_claimed(
        self, path, claimed, yielded
    ):
        field_policy = field_policy_of({CLAIM: "A/x: **", YIELD: "B/x: **"})

        assert field_policy.claimed("A", "x", place(*path)) is claimed
        assert field_policy.yielded("B", "x", place(*path)) is yielded

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("", "it names no field"),
            (" ; ", "it names no field"),
            ("a" * (LONGEST + 1), f"longer than {LONGEST}"),
            ("a" * LONGEST, "aaa… is not KIND/NAME"),
            (f"A/x: {'a' * 4000}..b", "aaa… is no path; it breaks at '.b'"),
            (f"A/x: {'a' * 4000}.", "aaa…: a path is missing, or ends in a dot"),
            ("\0" * 4000, "…"),
            ("nonsense", "'nonsense' is not KIND/NAME"),
            ("A/x: a..b", "no path"),
        ],
    )
    @pytest.mark.parametrize("name", [YIELD, CLAIM])
    def test_what_cannot_be_read_is_told_by_the_annotations_name(self, name, text, told):
        with pytest.raises(FieldPolicyError) as refused:
            field_policy_of({name: text})

        assert str(refused.value).startswith(f"{name}: ")
        assert len(str(refused.value)) <= 300
        assert told in str(refused.value)


class TestHostile:
    @given(st.text(max_size=200))
    def test_any_text_is_read_or_refused(self, text):
        try:
            found = list(parse(text))
        except FieldPolicyError:
            return
        assert all(isinstance(t.covers("A", "x", text), bool) for t in found)

    @given(st.text(st.sampled_from('A/x: a.*[]"=,;\\\n1'), max_size=40))
    def test_what_is_nearly_a_term_is_read_or_refused(self, text):
        try:
            found = list(parse(f"A/x: {text}"))
        except FieldPolicyError:
            return
        assert found

    @pytest.mark.parametrize(
        "text",
        [
            "A/" + "a" * 4000,
            "A/x: " + "[" * 4000,
            "A/x: " + '"' * 4000,
            "A/x: " + "a" * 4000 + "[",
            "A/x: a[x=" + '"\\' * 2000,
            "A/x: " + ".".join(["*a"] * 1000) + ".",
        ],
    )
    def test_a_long_one_is_refused(self, text):
        with pytest.raises(FieldPolicyError):
            field_policy_of({YIELD: text})

    @pytest.mark.parametrize(
        "pattern",
        [
            "*" + ".*" * 2000 + ".z",
            "a" + "[*]" * 1300 + ".z",
            "a" + ".a" * 2000 + ".z",
            "a" + ".a" * 2000 + ".z.**",
        ],
    )
    def test_a_long_path_is_matched(self, pattern):
        (term,) = parse(f"A/x: {pattern}")

        for path in ("." + "a" * 5000, ".a" * 2500, '.a[x="b"]' * 500, '[x="' * 1200):
            assert not term.covers("A", "x", path)


class TestUnknown:
    def test_a_misspelt_annotation_is_named_with_the_nearest(self):
        policy = field_policy_of({"hedgerow.dev/yeild": "x", "other.dev/yeild": "x"})

        assert policy.unknown == (
            "hedgerow.dev/yeild is no annotation of hedgerow's; did you mean hedgerow.dev/yield?",
        )

    def test_one_that_is_like_none_is_named_too_and_their_number_is_bounded(self):
        names = [f"hedgerow.dev/{number}{'z' * 200}" for number in range(99)]
        unknown = field_policy_of(dict.fromkeys(names, "")).unknown

        assert len(unknown) == 4
        assert all(len(told) < 130 and "mean" not in told.partition("…")[2] for told in unknown)

    def test_what_is_known_is_not(self):
        term = "Deployment/web: spec.replicas"
        known = {"hedgerow.dev/yield": term, "hedgerow.dev/claim": term, "hedgerow.dev/status": "x"}

        assert field_policy_of(known).unknown == ()


def _deep(depth: int, name: str = "a") -> list[tuple[str, ...]]:
    """Return 1,000 fields of one map at a depth."""
    above = (f"f:{name}",) * (depth - 1)
    return [(*above, f"f:{name}{number}") for number in range(1000)]


def _items() -> list[tuple[str, ...]]:
    """Return two fields of each of 500 environment variables."""
    above = place("spec", "template", "spec", "containers", 'k:{"name":"web"}', "env")
    return [
        (*above, f'k:{{"name":"V{number}"}}', field)
        for number in range(500)
        for field in ("f:name", "f:value")
    ]


def lines_run(function: Callable[[], None]) -> int:
    """Return how many lines of Python a call runs."""
    lines, before = 0, sys.gettrace()

    def trace(_frame: FrameType, event: str, _: object) -> object:
        nonlocal lines
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines


class TestCost:
    """The largest annotations, and an object with 1,000 fields: lines of Python for each field.

    A look at one with 5,000 takes some 4 to 35 ms of the 50 for which the loop may be held.
    """

    @staticmethod
    def largest(path: str) -> str:
        return "A/x: " + ", ".join([path] * min(MOST, (LONGEST - 5) // (len(path) + 2)))

    @pytest.mark.untraced  # it traces by itself
    @pytest.mark.parametrize("fields", [_deep(5), _deep(40), _deep(31, "a.a"), _items()])
    @pytest.mark.parametrize(
        "path",
        [
            "a.b",
            "*.*",
            ".".join("*" * 30),
            ".".join("a" * 30) + ".*",
            ".".join("*" * 30) + ".**",
            ".".join("a" * 2040),
            "spec.template.spec.containers[*].env[*].other",
            'spec.template.spec.containers[name="web"].env[*].**',
        ],
    )
    def test_it_is_the_fields_and_not_the_paths_that_cost(self, path, fields):
        text = self.largest(path)
        policy = field_policy_of({YIELD: text, CLAIM: text})

        def ask() -> None:
            for one in fields:
                policy.claimed("A", "x", one)
            policy.first(CLAIM, "A", "x", fields)

        steps = sum(map(len, fields))
        assert lines_run(ask) < 12 * steps + 130 * len(fields)

    STEPS = st.sampled_from(["f:a", "f:b", "f:a.b", 'k:{"n":1}'])

    @given(st.lists(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=12))
    def test_what_was_asked_before_changes_no_answer_and_the_first_of_each_is_found(self, fields):
        text = "A/x: a.*.b, a.**, b, a[*].b, *.*, b.a.b, a[n=1]"
        policy = field_policy_of({YIELD: text})

        covered: dict[str, list[tuple[str, ...]]] = {}
        for one in fields:
            fresh, again = (
                [term.text for term in terms if term.covers("A", "x", one)]
                for terms in (parse(text), policy.yields)
            )
            assert policy.yielded("A", "x", one) == bool(fresh)
            assert again == fresh
            for term in fresh:
                covered.setdefault(term, []).append(one)
        found = {term.text: first for term, first in policy.first(YIELD, "A", "x", fields)}
        assert found == {text: each[0] for text, each in covered.items()}
