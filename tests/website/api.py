"""API: pages of the library and of the test kit, from their source alone: nothing is imported."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

import griffe

from support.code.sources import ROOT
from website.markdown import code, definitions, prose

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPICS = {
    "hedgerow.contract": ("controllers", "Controllers", "What a controller declares and returns."),
    "hedgerow_schemas.base": ("resources", "Custom resources", "Models of resources."),
    "hedgerow_schemas.definition": ("definitions", "Definitions", "What a definition has."),
    "hedgerow_schemas": ("views", "Views", "What is read of Kubernetes's own kinds."),
    "hedgerow.plan": ("conditions", "Conditions", "Conditions of a status."),
    "hedgerow.workloads": ("workloads", "Workloads", "Pods, and what has them."),
    "hedgerow.schedule": ("schedules", "Schedules", "The schedules of a CronJob."),
    "hedgerow.fields": ("fields", "Fields", "Who holds a field, and values as the server reads."),
    "hedgerow_testing": ("testing", "The test kit", "What tests of any operator are made with."),
    "hedgerow": ("programs", "Programs", "Running controllers, their settings, and small helpers."),
}
"""For the modules below a prefix, the longest that fits: a page's name, title and first line."""
DIRECTORY = "reference/api"
FOREIGN = {"Field": "pydantic's `Field`, for the fields of a `Model`."}
"""What is public and has its documentation elsewhere."""
VERSION = "__version__"
PUBLIC = ("hedgerow", "hedgerow_testing")
WIDTH = 70
"""How long a line of a signature may be."""


@cache
def pages() -> dict[str, str]:
    """Return the pages by their places."""
    by_topic = defaultdict[str, dict[str, Any]](dict)
    for module in PUBLIC:
        for name, found in public(module).items():
            by_topic[_topic(name, found, module)][f"{module}.{name}"] = found
    made = {f"{DIRECTORY}/{TOPICS[topic][0]}.md": _page(topic, by_topic[topic]) for topic in TOPICS}
    listed = definitions(
        (f"[{title}]({name}.md)", f"{line} " + ", ".join(
            f"[`{_short(each)}`]({name}.md#{_anchor(each)})" for each in sorted(by_topic[topic])
        ))
        for topic, (name, title, line) in TOPICS.items()
    )  # fmt: skip
    head = (
        "# Python API\n\nWhat `hedgerow.__all__` and `hedgerow_testing.__all__` name; nothing else"
        " is promised. How to use it is told in [hedgerow as a library](../../guides/library.md)"
        " and [the test kit](../../guides/testing.md)."
    )
    return made | {f"{DIRECTORY}/index.md": f"{head}\n\n{listed}"}


@cache
def public(module: str) -> dict[str, Any]:
    """Return what a module's `__all__` names; None for what has its source elsewhere."""
    found: Any = _loaded()[module]
    names = [str(name).strip("'\"") for name in found.exports]
    return {name: _target(found, name) for name in names}


@cache
def _loaded() -> griffe.ModulesCollection:
    loader = griffe.GriffeLoader(search_paths=[ROOT / "operator", ROOT / "schemas"])
    loader.load("hedgerow")
    loader.load("hedgerow_schemas")
    loader.load("hedgerow_testing")
    loader.resolve_aliases(implicit=True, external=False)
    return loader.modules_collection


def _target(module: Any, name: str) -> Any:
    if name in FOREIGN or name == VERSION:
        return None
    member = module.members[name]
    return member.final_target if member.is_alias else member


def _topic(name: str, found: Any, module: str) -> str:
    if name in FOREIGN:
        return "hedgerow_schemas.base"
    path = module if found is None or module == "hedgerow_testing" else found.path
    path = path.replace("hedgerow.controllers.cronjob", "hedgerow.schedule")
    return max((topic for topic in TOPICS if path.startswith(topic)), key=len)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _anchor(name: str) -> str:
    return _short(name).lower()


def _page(topic: str, members: dict[str, Any]) -> str:
    _, title, line = TOPICS[topic]
    parts = [f"# {title}", line]
    for name, found in sorted(members.items()):
        parts.append(f"## {code(_short(name))}")
        parts += _foreign(name) if found is None else _object(name, found)
    return "\n\n".join(filter(None, parts))


def _foreign(name: str) -> list[str]:
    return [FOREIGN.get(_short(name), "The version of the library.")]


def _object(name: str, found: Any) -> Iterator[str]:
    """Yield the parts of what is said about one public name."""
    yield _block(f"from {name.rpartition('.')[0]} import {_short(name)}")
    if found.is_function:
        yield _signature(found, _short(name))
        yield _docstring(found)
    elif found.is_class:
        yield _docstring(found)
        yield from _class(found)
    else:
        yield _block(f"{_short(name)} = {found.value}")
        yield _docstring(found)


def _class(found: Any) -> Iterator[str]:
    """Yield a class as it is written, its documented attributes, then its methods."""
    members = {name: one for name, one in _members(found).items() if not name.startswith("_")}
    attributes = [
        one
        for one in members.values()
        if one.is_attribute and "property" not in one.labels and one.name != "model_config"
    ]
    bases = ", ".join(str(base) for base in found.bases)
    head = f"class {found.name}({bases}):" if bases else f"class {found.name}:"
    made = "__init__" in found.members and "dataclass" not in found.labels
    lines = [f"    {_attribute(one)}" for one in attributes]
    if made:
        text = _declared(found.members["__init__"], "__init__")
        lines += [*([""] if lines else []), *(f"    {line}" for line in text.splitlines())]
    yield _block("\n".join([head, *lines])) if lines else ""
    told = [(code(one.name), _described(one)) for one in attributes]
    yield definitions((name, text) for name, text in told if text)
    for one in members.values():
        if one.is_function or "property" in one.labels:
            yield f"### {code(f'{found.name}.{one.name}')}"
            plain = f"{one.name}: {one.annotation}"
            yield _signature(one, one.name) if one.is_function else _block(plain)
            yield _docstring(one)


def _members(found: Any) -> dict[str, Any]:
    """Return a class's members, with those of bases that have no entry of their own."""
    listed = {one.path for module in PUBLIC for one in public(module).values() if one is not None}
    inherited = {
        name: one.final_target
        for name, one in found.inherited_members.items()
        if one.final_target.parent.path not in listed
    }
    return inherited | {
        name: one.final_target if one.is_alias else one for name, one in found.members.items()
    }


def _attribute(attribute: Any) -> str:
    """Return an attribute as it is written, without what only the code reads."""
    annotation = str(attribute.annotation or "")
    value = str(_given(attribute).get("default", attribute.value or ""))
    if annotated := re.match(r"(?:ClassVar\[)?Annotated\[(.*)", annotation):
        annotation = _split(annotated[1].rstrip("]"))[0]
    if not annotation:
        made = re.match(r"([A-Z]\w*)\(", value)
        return f"{attribute.name}: {made[1]}" if made else attribute.name
    if re.search(r"\b_[a-z]|self\.|^Field\(", value):
        value = "..."
    return f"{attribute.name}: {annotation}" + f" = {value}" * bool(value)


def _given(attribute: Any) -> dict[str, Any]:
    """Return the arguments of a `Field`, which pydantic reads; none for another value."""
    value = attribute.value
    if not isinstance(value, griffe.ExprCall) or str(value.function) != "Field":
        return {}
    return {one.name: one.value for one in value.arguments if isinstance(one, griffe.ExprKeyword)}


def _described(attribute: Any) -> str:
    """Return what is said of an attribute: below it, or in its `Field`."""
    said = _given(attribute).get("description")
    return prose(ast.literal_eval(str(said))) if said else _docstring(attribute)


def _docstring(found: Any) -> str:
    return prose(found.docstring.value) if found.docstring else ""


def _block(text: str) -> str:
    return f"```python\n{text}\n```"


def _signature(function: Any, name: str) -> str:
    return _block(_declared(function, name))


def _declared(function: Any, name: str) -> str:
    """Return the line that declares a function; several where one would be too long."""
    head = "async " * ("async" in function.labels) + f"def {name}"
    line = f"{head}{function.signature(return_type=True).removeprefix(function.name)}"
    if len(line) <= WIDTH:
        return line
    inner, _, returned = line.removeprefix(f"{head}(").rpartition(")")
    return "\n".join([f"{head}(", *(f"    {one}," for one in _split(inner)), f"){returned}"])


def _split(parameters: str) -> list[str]:
    """Return what commas part; a comma inside brackets parts nothing."""
    depth, parts = 0, [""]
    for letter in parameters:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
