"""What an author declares wrongly is one line that says how it is right, without a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hedgerow import (
    ApiResource,
    Apply,
    BuiltIn,
    ConfigMap,
    ContributesTo,
    Contribution,
    Controller,
    ControllerOptions,
    Copy,
    Create,
    CustomResource,
    Desired,
    Keep,
    Lag,
    Notice,
    Observed,
    Option,
    Relation,
    Secret,
    Select,
    SourceNotice,
    View,
    contract,
)
from hedgerow.contract import Answers
from hedgerow.contract.hints import hints_of, misfits
from hedgerow.contract.mistakes import CheckedArguments, RegistrationError
from hedgerow.registry import Registry, ours
from library.greeter import GREETER, Greeting, compose

NAMED = "the controller greeter has "


def changed(**parts: Any) -> Callable[[], object]:
    return lambda: Registry((replace(GREETER, **parts),))


def made(*given: Any, **named: Any) -> Callable[[], object]:
    return lambda: Controller(*given, **named)


def of_kind(*api: Any) -> Callable[[], object]:
    """Declare a controller that owns a kind with this `api`."""
    kind = type("Odd", (View,), {"api": ApiResource(*api)})
    return changed(owns=(kind,))


def of_resource(*api: Any) -> Callable[[], object]:
    kind = type(
        "Odd",
        (CustomResource,),
        {"api": ApiResource(*api)},
    )
    return changed(resource=kind)


async def asynchronous(_resource: Any, _observed: Any) -> Desired:
    return Desired()


class Wide(CustomResource):
    """A resource that is in no namespace."""

    api: ClassVar[ApiResource] = ApiResource("x.example.com/v1", "Wide", "wides", namespaced=False)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a kind as text": (changed(owns=("ConfigMap",)),
        f"{NAMED}str as `owns[0]`, not a class derived from View: write the class, without quotes"),
    "one kind": (changed(owns=ConfigMap),
        f"{NAMED}the class ConfigMap as `owns`, not tuple: write `(ConfigMap,)`"),
    "one kind as text": (changed(owns="ConfigMap"),
        f"{NAMED}str as `owns`, not tuple: write `(ConfigMap,)`"),
    "no kinds": (changed(owns=None), f"{NAMED}NoneType as `owns`, not tuple"),
    "a class that is no view": (changed(owns=(Greeting,)),
        f"{NAMED}the class Greeting as `owns[0]`, not a class derived from View"),
    "a view as the resource": (changed(resource=ConfigMap),
        f"{NAMED}the class ConfigMap as `resource`, not a class derived from Resource"),
    "the resource as text": (changed(resource="Greeting"),
        f"{NAMED}str as `resource`, not a class derived from Resource: write the class"),
    "a name that is no text": (changed(name=5), "int as `name`, not str"),
    "a hyphen in the name": (changed(name="my-thing"), "'my-thing' is no controller's name: lower"),
    "a name that is taken": (changed(name="lease"), "and none of certificates, cli,"),
    **{
        f"the name {name!r}": (changed(name=name), "is no controller's name: lower")
        for name in ("", "Greeter", "9lives", "a" * 41)
    },
    "an asynchronous compose": (changed(compose=asynchronous),
        f"{NAMED}a function as `compose` that is `async`: it is called without `await`"),
    "a compose of one argument": (changed(compose=lambda _resource: Desired()),
        f"{NAMED}a function as `compose` that does not take 2 arguments, but `(_resource)`"),
    "what compose returns": (changed(compose=Desired()), "Desired as `compose`, not a function"),
    "a validate of two": (changed(validate=lambda _one, _other: ()),
        "a function as `validate` that does not take 1 arguments"),
    "one relation": (changed(relates=Relation(Secret)),
        f"{NAMED}Relation as `relates`, not tuple: write `(…,)`"),
    "a kind for a relation": (changed(relates=(Secret,)),
        f"{NAMED}the class Secret as `relates[0]`, not Relation"),
    "a relation of text": (
        changed(relates=(Relation("Secret"),)),  # type: ignore[arg-type]
        f"{NAMED}str as `relates[0].kind`, not a class derived from View: write the class",
    ),
    "an `of` without arguments": (
        changed(relates=(Relation(Secret, of=lambda: ()),)),  # type: ignore[arg-type]
        "a function as `relates[0].of` that does not take 1 arguments",
    ),
    "labels as a map": (
        changed(
            relates=(Relation(Secret, select=Select(labels={"app": "x"})),),  # type: ignore[arg-type]
        ),
        f"{NAMED}dict as `relates[0].select.labels`, not str",
    ),
    "one pattern of names": (changed(child_names={ConfigMap: "{}-x"}),
        f"{NAMED}str as `child_names[ConfigMap]`, not tuple: write `('{{}}-x',)`"),
    "names by text": (changed(child_names={"ConfigMap": ("{}-x",)}),
        f"{NAMED}str as `a key of child_names`, not a class derived from View: write the class"),
    "names as a list": (changed(child_names=[]), f"{NAMED}list as `child_names`, not Mapping"),
    "a contribution of text": (
        changed(contributes=(ContributesTo(Secret, ("data",)),)),  # type: ignore[arg-type]
        f"{NAMED}str as `contributes[0].fields[0]`, not tuple: write `('data',)`",
    ),
    "options without a class": (changed(options=(Option("a", "b"),)),
        f"{NAMED}tuple as `options`, not ControllerOptions"),
    "one option": (
        changed(options=ControllerOptions(Option("a", "b"), lambda _: GREETER)),  # type: ignore[arg-type]
        f"{NAMED}Option as `options.known`, not tuple: write `(…,)`",
    ),
    "a lag of text": (changed(lag="lag"), f"{NAMED}str as `lag`, not Lag"),
    "a lag without a function": (
        changed(lag=Lag("a", "b", timedelta())),  # type: ignore[arg-type]
        f"{NAMED}timedelta as `lag.due`, not a function",
    ),
    "a switch as text": (changed(opt_in="no"), f"{NAMED}str as `opt_in`, not bool"),
    "built_in of a custom one": (changed(built_in=BuiltIn(select=Select(labels="a"))),
        "leave `built_in` out"),
    "two scopes": (changed(resource=Wide), "writes ConfigMap for Wide: both are in a namespace"),
    "a misspelt argument": (made("e", Greeting, compose, own=(ConfigMap,)),
        "Controller has no `own`: did you mean `owns`?"),
    "an argument of nothing": (made("e", Greeting, compose, (ConfigMap,), backoff=3),
        "Controller has no `backoff`; it has name, resource, compose, owns, relates,"),
    "arguments that lack": (made("e", Greeting), "missing a required argument: 'compose'"),
    "too many arguments": (made("e", Greeting, compose, (), ()),
        "Controller: too many positional arguments"),
    "a misspelt one of a relation": (
        lambda: Relation(Secret, select=Select(label="app")),  # type: ignore[call-arg]
        "Select has no `label`: did you mean `labels`?",
    ),
    "a misspelt one of built_in": (
        lambda: BuiltIn(selects=Select()),  # type: ignore[call-arg]
        "BuiltIn has no `selects`: did you mean `select`?",
    ),
    "a relation without of": (lambda: Relation(Secret, same_namespace=True),
        "a relation with `same_namespace` needs `of`"),
    "a plural without s": (of_kind("v1", "ConfigMap", "configmap"),
        "the class Odd has an `api` that is wrong: the plural of ConfigMap is 'configmaps', not"),
    "a plural as the kind": (of_kind("apps/v1", "Deployments", "deployments"),
        "the kind of deployments is 'Deployment', not 'Deployments'"),
    "a kind in small letters": (of_kind("v1", "configmap", "configmaps"),
        "'configmap' is no kind, such as 'ConfigMap'"),
    "a plural in capitals": (of_kind("networking.k8s.io/v1", "Ingress", "Ingresses"),
        "'Ingresses' is no plural, such as 'configmaps'"),
    "a group without version": (of_kind("networking.k8s.io", "Ingress", "ingresses"),
        "'networking.k8s.io' is no group and version, such as 'shop.example.com/v1'"),
    "another scope": (of_kind("v1", "Namespace", "namespaces"), "a Namespace is cluster-scoped"),
    "a kind that is no text": (of_kind("v1", None, "configmaps"), "NoneType as `kind`, not str"),
    "a group that is no domain": (of_resource("greeter/v1", "Greeting", "greetings"),
        "the group 'greeter' is no domain of yours, such as 'shop.example.com'"),
    "a resource in the core group": (of_resource("v1", "Greeting", "greetings"),
        "the group '' is no domain of yours"),
    "a controller alone": (
        lambda: Registry.of_all(GREETER),  # type: ignore[arg-type]
        "Controller for the controllers: give them as in `main((CONTROLLER,))`",
    ),
    "a function as controller": (
        lambda: Registry.of_all((compose,)),  # type: ignore[arg-type]
        "function among the controllers: give each as in `main((CONTROLLER,))`",
    ),
    "two of a name": (lambda: Registry((GREETER, GREETER)), "two controllers are named greeter"),
    "two of a resource": (lambda: Registry((GREETER, replace(GREETER, name="other"))),
        "for kind Greeting"),
    "two kinds of one name": (changed(owns=(ConfigMap, *GREETER.owns)),
        "greeter has two kinds called ConfigMap"),
}  # fmt: skip


@pytest.mark.parametrize(("declare", "told"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_one_line(declare, told):
    with pytest.raises(RegistrationError) as error:
        declare()

    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_cluster_in_memory_says_the_same(in_memory):
    with pytest.raises(RegistrationError, match=r"not tuple: write `\(ConfigMap,\)`"):
        in_memory(replace(GREETER, owns=ConfigMap))


def test_what_is_right_passes():
    lists: Any = replace(
        GREETER,
        owns=[ConfigMap],
        compose=partial(lambda _more, _greeting, _observed: Desired(), 1),
        relates=[Relation(Secret, of=min)],  # which has no signature
    )

    assert Registry((lists,)).names == ("greeter",)
    assert Registry(ours().controllers).names == ours().names


DECLARED = (
    GREETER,
    BuiltIn(select=Select(labels="a")),
    Option("a", "b"),
    ControllerOptions((), lambda _: GREETER),
    Lag("a", "b", lambda _: None),
    Relation(Secret, of=lambda _: ()),
    Select(labels="a"),
    ContributesTo(Secret, (("data",),)),
)
RETURNED = (
    Desired(),
    Apply(ConfigMap, "a", {}),
    Create(ConfigMap, "a", {}),
    Keep(ConfigMap, "a"),
    Contribution(ConfigMap, "a", {}),
    Notice("A", "b"),
    Copy(ConfigMap, "a", {}),
    SourceNotice("A", "b", source=ConfigMap({})),
)


def test_each_declaration_can_be_copied():
    assert all(isinstance(one, CheckedArguments) for one in DECLARED)
    for declared in DECLARED:
        assert copy(declared) == deepcopy(declared) == declared


FIELDS = [
    pytest.param(part, field.name, id=f"{type(part).__name__}-{field.name}")
    for part in (*DECLARED, *RETURNED, ConfigMap.api)
    for field in fields(part)
]


@pytest.mark.parametrize(("part", "name"), FIELDS)
def test_each_field_of_each_part_is_held_to_its_type(part, name):
    odd = "no" if hints_of(type(part))[name] is bool else object()
    [told] = misfits(replace(part, **{name: odd}), type(part))

    assert told.startswith(f"{type(odd).__name__} as `{name}`, not ")
    assert list(misfits(part, type(part))) == []


def test_no_part_of_the_contract_is_left_out():
    parts = {one for one in vars(contract).values() if isinstance(one, type) and is_dataclass(one)}

    assert {type(one) for one in (*DECLARED, *RETURNED)} == parts - {Answers, Observed}


PROGRAM = """from hedgerow import *
from library.greeter import Greeting, compose
CASES = {
    "main": lambda: main((Controller("e", Greeting, compose, owns=("ConfigMap",)),), name="e"),
    "name": lambda: main((Controller("e", Greeting, compose, owns=(ConfigMap,)),), name="My-Shop"),
    "made": lambda: Controller("e", Greeting, compose, own=(ConfigMap,)),
}
import sys
CASES[sys.argv.pop(1)]()
"""


class TestAProgram:
    """What nobody catches ends the program with the line, and where the author wrote it."""

    def run(self, folder: Path, *words: str) -> str:
        (folder / "shop.py").write_text(PROGRAM, "utf-8")
        done = subprocess.run(
            (sys.executable, "shop.py", *words), cwd=folder, check=False, capture_output=True,
            text=True, timeout=60, env={"PYTHONPATH": str(Path(__file__).parents[1])},
        )  # fmt: skip

        assert (done.returncode, done.stdout) == (1, "")
        return done.stderr

    def test_ends_with_one_line(self, tmp_path):
        err = self.run(tmp_path, "main", "version")

        assert err.count("\n") == 1
        assert "RegistrationError: shop.py, line 4: the controller e has str as `owns[0]`" in err

    def test_ends_with_a_line_of_its_log_if_that_is_json(self, tmp_path):
        [line] = self.run(tmp_path, "name", "run").splitlines()

        assert json.loads(line)["error"].startswith("'My-Shop' is no program's name")

    def test_any_other_error_ends_as_before(self, monkeypatch):
        told: list[tuple[Any, ...]] = []
        monkeypatch.setattr(sys, "excepthook", lambda *ended: told.append(ended))
        mistake, other = RegistrationError("it is wrong"), ValueError("it is, too")
        hook = sys.excepthook
        for error in (mistake, other):
            hook(type(error), error, None)

        assert [(kind, str(error)) for kind, error, _ in told] == [
            (RegistrationError, "it is wrong"),
            (ValueError, "it is, too"),
        ]
        assert told[1][1] is other

    def test_shows_the_traceback_if_asked(self, tmp_path):
        err = self.run(tmp_path, "made", "--debug")

        assert err.startswith("Traceback")
        assert err.endswith("Controller has no `own`: did you mean `owns`?\n")
