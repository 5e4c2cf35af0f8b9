"""Declaration: what compose returned, checked, and compared with what it returned before.

The text of an error names kinds, names and paths, and never a value, which may be secret.
"""

from __future__ import annotations

import traceback
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel

from hedgerow.contract import Apply, Create, Desired
from hedgerow.plan.conditions import Problem

if TYPE_CHECKING:
    from hedgerow.contract import Child, Controller
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import View

FAILED: Final = "ComposeFailed"
NOT_PURE: Final = "NotPure"
_TOP: Final = ("apiVersion", "kind", "status")
_IDENTITY: Final = ("name", "namespace", "uid", "generateName")


class ComposeError(Exception):
    """Nothing can be done with what compose returned; the text is one sentence that says why."""


class DeclarationError(ComposeError):
    """Compose returned something that no controller may return, or asked for such a kind."""


class NotPureError(ComposeError):
    """Compose returns something else for the same input, or asks to be called at once for ever."""


def check_read(kind: type[View], controller: Controller[Any]) -> None:
    """Raise DeclarationError if no object is ever of this class: it would always seem missing."""
    known = controller.read
    if kind not in known and not any(issubclass(one, kind) for one in known):
        raise DeclarationError(
            f"compose reads {kind.__qualname__} ({kind.__module__}), but neither `owns`, nor"
            " `relates`, nor `claims` has that class"
        )


def checked(desired: object, controller: Controller[Any], owner: ObjectRef) -> Desired:
    """Return what compose returned; raises DeclarationError for what it must not return.

    The names of children are those that the admission policy lets the operator write.
    """
    if not isinstance(desired, Desired):
        raise DeclarationError(f"compose returned {type(desired).__name__}, not Desired")
    seen = set[tuple[str, str]]()
    for child in desired.children:
        target = child.kind.api.kind, child.name
        if type(child.name) is not str or not child.name:
            raise DeclarationError(f"compose returned a {target[0]} without a name")
        if wrong := " twice" if target in seen else _wrong(child, controller, owner):
            raise DeclarationError(f"compose returned {'/'.join(target)}{wrong}")
        seen.add(target)
    return desired


def _wrong(child: Child, controller: Controller[Any], owner: ObjectRef) -> str:
    """Return what is wrong with a declared child, as text after its name; or nothing."""
    kind = child.kind.api.kind
    if child.kind not in controller.owns:
        return f", but `owns` has no {kind}"
    if not isinstance(child, Apply | Create):
        return ""
    if not controller.allows_name(child.kind, owner.name, child.name):
        patterns = controller.names_of(child.kind)
        expected = " or ".join(pattern.replace("{}", owner.name) for pattern in patterns)
        return (
            f", but a {kind} of {owner.name} is named {expected}; other names are declared by"
            " `child_names`"
        )
    meta = child.fields.get("metadata")
    odd = [name for name in _TOP if name in child.fields]
    if isinstance(meta, dict):
        odd += [f"metadata.{name}" for name in _IDENTITY if name in meta]
    if not odd:
        return ""
    return (
        f" with the field {odd[0]}: leave it out, since kind and name are given beside the fields,"
        " and a child is in the namespace of its resource"
    )


def compose_failed(error: Exception) -> Problem:
    """Return the problem of a resource for which compose raised an error."""
    if isinstance(error, DeclarationError):
        return Problem(FAILED, str(error))
    frames = traceback.extract_tb(error.__traceback__)
    at = f" in {PurePath(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return Problem(FAILED, f"compose raised {type(error).__name__}{at}; the log has the rest")


def not_pure(error: NotPureError) -> Problem:
    """Return the problem of a resource whose compose is not pure."""
    return Problem(NOT_PURE, str(error))


def difference(one: Desired, other: Desired) -> str:
    """Return where two declarations differ first, such as `ConfigMap/x .data.time`; or nothing."""
    return "" if one == other else _difference(_named(one), _named(other), "").strip(" .")


def _named(desired: Desired) -> dict[str, Any]:
    """Return the parts of a declaration, children and claims by kind and name."""
    parts = {part.name: getattr(desired, part.name) for part in fields(desired)}
    for part in ("children", "claims"):
        for each in parts.pop(part):
            parts[f"{each.kind.api.kind}/{each.name} "] = each
    return parts


def _difference(one: Any, other: Any, path: str) -> str:
    one, other = _parts(one), _parts(other)
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
        for name in dict.fromkeys((*first, *second)):
            if name not in first or name not in second:
                return f"{path}.{name}"
            if found := _difference(first[name], second[name], f"{path}.{name}"):
                return found
        return ""
    return "" if one == other else path


def _parts(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        return parts.pop("fields", {}) | parts
    if isinstance(value, list | tuple):
        return dict(enumerate(cast("list[Any]", value)))
    return value
