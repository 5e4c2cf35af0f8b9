"""Which remedies are offered for a contested field: only those that work on it."""

from __future__ import annotations

import shlex

import pytest

from hedgerow.objects import ObjectRef
from hedgerow.plan.remedies import overview, own, remedies, without_effect
from hedgerow.plan.yield_and_claim import CLAIM, LONGEST, YIELD, field_policy_of, place_of
from hedgerow_schemas.base import ContestedField
from hedgerow_schemas.bluegreen import BlueGreen

OWNER = ObjectRef(BlueGreen.api, "b", "demo", "uid")
SIDE = '.spec.template.spec.containers[name="side"]'
ANNOTATE = "kubectl annotate bluegreens.app.demo.kakao.com demo"


def field(path: str, reason: str = "OtherValue", manager: str | None = "kubectl-edit", **more: str):
    target, declared = more.get("object", "Deployment/web"), more.get("declared")
    return ContestedField(
        object=target, path=path, reason=reason, manager=manager, declared=declared
    )


def offered(found: ContestedField, **annotations: str) -> list[str]:
    words = {"yields": YIELD, "claims": CLAIM}
    named = {words[word]: text for word, text in annotations.items()}
    return [f"{one.effect}: {one.command}" for one in remedies(OWNER, named, found)]


def leave(term: str) -> str:
    return f"To leave it as it is: {ANNOTATE} 'hedgerow.dev/yield={term}' -n b"


def claim(term: str, effect: str = "To take it back") -> str:
    where = "where the namespace allows claims"
    return f"{effect}, {where}: {ANNOTATE} 'hedgerow.dev/claim={term}' -n b"


def adopt(what: str, effect: str = "To take it back", manager: str = "kubectl-edit") -> str:
    name, _, path = what.partition(": ")
    return f"{effect}: hedgerow adopt {name} --from {manager}{path and f' --field {path}'} -n b"


MARK = ".metadata.labels.hedgerow.dev/controller"
WEB, LABEL, HOST = "Deployment/web", "metadata.labels.a.selector", "spec.template.spec.hostname"
FIRST, LABELLING = "before-first-apply", "kubectl label --overwrite Deployment/web"
CASES = [
    ("another value", field(".spec.replicas"),
     [leave(f"{WEB}: spec.replicas"), claim(f"{WEB}: spec.replicas")]),
    ("a selector is never claimed", field(".spec.selector", object="Service/demo"),
     [leave("Service/demo: spec.selector"), adopt("Service/demo: spec.selector")]),
    ("the label by which children are watched", field(MARK, declared="bluegreen"),
     [f"To take it back: {LABELLING} hedgerow.dev/controller=bluegreen -n b"]),
    ("what marks a child is neither yielded nor claimed", field(MARK),
     [adopt(f"{WEB}: {MARK[1:]}")]),
    ("an owner reference", field('.metadata.ownerReferences[uid="x"]'),
     [adopt(f"{WEB}: 'metadata.ownerReferences[uid=\"x\"]'")]),
    ("a label that is called like a selector", field(f".{LABEL}"),
     [leave(f"{WEB}: {LABEL}"), claim(f"{WEB}: {LABEL}")]),
    ("an item that is declared no more is adopted", field(SIDE, "DeclaredNoMore", "kubectl set"),
     [adopt(f"{WEB}: '{SIDE[1:]}.**'", "To remove it", "'kubectl set'")]),
    ("an item that is declared no more, of emptied managed fields",
     field(SIDE, "DeclaredNoMore", FIRST), [adopt(WEB, "To remove it", FIRST)]),
    ("an item that may have been ours", field(SIDE, "UnknownOwner", FIRST),
     [leave(f"{WEB}: {SIDE[1:]}"), adopt(WEB, "To remove it", FIRST)]),
    ("emptied managed fields", field(".spec.replicas", manager=FIRST),
     [leave(f"{WEB}: spec.replicas"), adopt(WEB, manager=FIRST)]),
    ("what nobody holds can be left to nobody", field(f".{HOST}", "Removed", None),
     [claim(f"{WEB}: {HOST}", "To put it back")]),
    ("a removed selector", field(".spec.selector", "Removed", None), []),
    ("our own status", field(".status.routeTo", object="BlueGreen/demo"),
     [adopt("BlueGreen.app.demo.kakao.com/demo", "To write it again")]),
    ("a path that no term can name", field(".spec.x[0]"), []),
]  # fmt: skip


@pytest.mark.parametrize(("found", "told"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_only_what_works_is_offered_as_a_line_that_can_be_pasted(found, told):
    assert offered(found) == told


def yielded(written: str) -> tuple[str, list[str]]:
    """Return the command that yields the replicas where this is yielded already, and its terms."""
    first, _ = remedies(OWNER, {YIELD: written}, field(".spec.replicas"))
    *_, word, _, _ = shlex.split(first.command)
    return first.command, [term.text for term in field_policy_of(dict([word.split("=", 1)])).yields]


class TestAnnotations:
    def test_what_is_yielded_already_stays_yielded(self):
        command, terms = yielded("Service/*: spec.ports ;")

        assert "--overwrite" in command
        assert terms == ["Service/*: spec.ports", "Deployment/web: spec.replicas"]

    def test_an_annotation_that_would_be_too_long_is_not_offered(self):
        full = "; ".join(f"Deployment/web: spec.x{number}" for number in range(63))

        assert len(offered(field(".spec.replicas"), yields=full)) == 2
        assert len(offered(field(".spec.replicas"), yields=f"{full}; Service/x: y")) == 1
        assert len(offered(field("." + "x" * LONGEST))) == 0

    def test_a_claim_is_not_offered_for_what_is_yielded_as_well(self):
        found = field(".spec.replicas", "ScaledToZero", None)

        assert len(offered(found)) == 1
        assert offered(found, yields="*/*: spec.replicas") == []

    def test_what_is_claimed_already_lacks_the_label_of_its_namespace(self):
        found = field(".spec.replicas")

        _, take = remedies(OWNER, {CLAIM: "Deployment/web: spec.replicas"}, found)

        assert str(take) == (
            "To take it back, as the claim says: let the namespace allow claims:"
            " `kubectl label namespace b hedgerow.dev/allow-claims=true --overwrite`"
        )

    @pytest.mark.parametrize("reason", ["OtherValue", "Removed", "ScaledToZero"])
    def test_no_command_is_offered_that_was_given_already(self, reason):
        found = field(".spec.replicas", reason)
        written = {CLAIM: "Deployment/*: spec.replicas", YIELD: "Service/*: spec.ports"}

        told = [one.command for one in remedies(OWNER, written, found)]
        assert not any(f"{CLAIM}=" in command for command in told)
        assert any("allow-claims" in command for command in told)

    def test_what_is_yielded_in_vain_is_not_yielded_once_more(self):
        found = field(".spec.replicas")

        assert offered(found, yields="Deployment/web: spec.replicas") == []

    def test_a_claim_on_a_cluster_scoped_resource_has_no_effect_and_is_not_offered(self):
        wide = ObjectRef(BlueGreen.api, "", "demo", "uid")

        told = [one.command for one in remedies(wide, {}, field(".spec.replicas"))]
        assert [YIELD in command for command in told] == [True]

    def test_entries_on_several_lines_become_one_line_that_can_be_pasted(self):
        written = "Service/*: spec.ports,\n  spec.type\nDeployment/web: spec.paused"
        command, terms = yielded(written)

        assert "\n" not in command
        assert terms == [
            "Service/*: spec.ports",
            "Service/*: spec.type",
            "Deployment/web: spec.paused",
            "Deployment/web: spec.replicas",
        ]

    def test_what_would_be_escaped_is_not_offered(self):
        written = 'Deployment/web: spec.env[name="\x1b"].value'

        assert not any(YIELD in one for one in offered(field(".spec.replicas"), yields=written))

    def test_a_term_is_quoted_for_the_shell(self):
        first, _ = remedies(OWNER, {}, field('.spec.env[name="it\'s"].value'))

        words = shlex.split(first.command)
        assert words[4] == f'{YIELD}=Deployment/web: spec.env[name="it\'s"].value'


class TestOverview:
    def test_it_names_object_and_namespace(self):
        assert overview("Deployment/web", "b") == "hedgerow owners Deployment/web --contested -n b"
        assert overview("Node/x", "") == "hedgerow owners Node/x --contested"

    def test_a_resource_is_named_with_its_group(self):
        assert own(OWNER) == "BlueGreen.app.demo.kakao.com/demo"


@pytest.mark.parametrize(
    ("word", "reason", "path", "why"),
    [
        (CLAIM, "OtherValue", '.metadata.finalizers[="x"]', "mark a child as hedgerow's"),
        (YIELD, "OtherValue", ".metadata.annotations.hedgerow.dev/x", "mark a child as hedgerow's"),
        (CLAIM, "DeclaredNoMore", SIDE, "adopted"),
        (CLAIM, "UnknownOwner", SIDE, "adopted"),
        (YIELD, "Removed", ".spec.x", "nobody else holds it"),
        (CLAIM, "ScaledToZero", ".spec.replicas", "it is yielded as well"),
        (CLAIM, "OtherValue", ".spec.selector", "never taken by force"),
        (CLAIM, "OtherValue", ".spec.replicas", "it is yielded as well"),
        (YIELD, "OtherValue", ".spec.replicas", "part of a value that is held as a whole"),
    ],
)
def test_a_term_without_effect_has_a_reason(word, reason, path, why):
    assert why in without_effect(word, reason, place_of(path))


class TestPlaceOf:
    @pytest.mark.parametrize(
        ("path", "field_path"),
        [
            (".spec.replicas", ("f:spec", "f:replicas")),
            (
                '.spec.ports[port=80,protocol="TCP"].port',
                ("f:spec", "f:ports", 'k:{"port": null, "protocol": null}', "f:port"),
            ),
            ('.metadata.finalizers[="a.b/c"]', ("f:metadata", "f:finalizers", "v:null")),
            (
                ".metadata.labels.hedgerow.dev/controller",
                ("f:metadata", "f:labels", "f:hedgerow.dev/controller"),
            ),
            ('.x[name="a\\"]b"].y', ("f:x", 'k:{"name": null}', "f:y")),
            ('.metadata.labels.a["b"].c', ("f:metadata", "f:labels", 'f:a["b"].c')),
            ("spec.replicas", ()),
            ("", ()),
        ],
    )
    def test_it_has_the_steps_of_a_printed_path(self, path, field_path):
        assert place_of(path) == field_path


def test_the_commands_are_those_of_the_program_that_manages_the_object():
    held = field(".spec.selector", object="Service/demo")

    (adopt,) = [one.command for one in remedies(OWNER, {}, held, program="greeter")][1:]
    assert adopt.startswith("greeter adopt Service/demo --from kubectl-edit")
    assert overview("Deployment/x", "shop", "greeter").startswith("greeter owners ")


def test_the_label_of_any_program_is_neither_yielded_nor_claimed():
    held = field(".metadata.labels.greeter.hedgerow.dev/controller")

    (adopt,) = remedies(OWNER, {}, held, program="greeter")
    assert adopt.command.startswith("greeter adopt ")
