"""Declaration: the result of compose, checked.

The text of an error names kinds, names and paths, and never a value, which may be secret.
"""

from __future__ import annotations

import math
import traceback
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from pydantic_core import PydanticSerializationError

from hedgerow.contract import KEEP_ALL, Apply, Contribution, Create, Desired, Keep
from hedgerow.contract.hints import class_of, misfits
from hedgerow.encoding import DEEPEST
from hedgerow.fields.applyconfiguration import extract
from hedgerow.plan.conditions import Problem
from hedgerow_schemas.base import ApiResource, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Child, Controller, Observed
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object

FAILED: Final = "ComposeFailed"
_TOP: Final = ("apiVersion", "kind", "status")
_IDENTITY: Final = ("name", "namespace", "uid", "generateName")
_JSON: Final = "fields are of dict with str as keys, list, str, int, float, bool and None alone"
LONGEST_PATH: Final = 16
"""The most steps of a path in a message."""


class ComposeError(Exception):
    """The result of compose is of no use; the text is one sentence that says why."""


class DeclarationError(ComposeError):
    """Compose returned something that no controller may return, or asked for such a kind."""


def check_read(kind: type[View], controller: Controller[Any]) -> None:
    """Raise DeclarationError if no object is ever of this class: it would always seem missing."""
    known = controller.observed_kinds
    if kind not in known and not any(issubclass(other, kind) for other in known):
        raise DeclarationError(
            f"compose reads {kind.__qualname__} ({kind.__module__}), but neither `owns`, nor"
            " `relates`, nor `contributes` has that class"
        )


def checked(desired: object, controller: Controller[Any], resource: ObjectRef) -> Desired:
    """Return the result of compose; raises DeclarationError if any part of it is not allowed.

    Each part is of the type that `contract.desired` gives it, and fields are JSON. The names of
    children are those that the admission policy lets the operator write.
    """
    if not isinstance(desired, Desired):
        raise DeclarationError(f"compose returned {class_of(desired)}, not Desired")
    if misfit := next(misfits(desired, Desired), "") or _wrong_status(desired, controller):
        raise DeclarationError(f"compose returned {misfit}")
    seen = set[tuple[str, str]]()
    for child in desired.children:
        if child in KEEP_ALL:
            continue
        target = _named_target(child)
        if wrong := " twice" if target in seen else _wrong(child, controller, resource):
            raise DeclarationError(f"compose returned {'/'.join(target)}{wrong}")
        seen.add(target)
    for contribution in desired.contributions:
        target = _named_target(contribution)
        if wrong := _wrong_fields(contribution.fields):
            raise DeclarationError(f"compose contributes to {'/'.join(target)}{wrong}")
    return desired


def expanded(desired: Desired, controller: Controller[Any], observed: Observed) -> Desired:
    """Return a declaration with `KEEP_ALL` replaced by the children and contributions it means.

    Those declared beside it stay as declared. Of the fields that we hold of a contributable object,
    only those are contributed that the controller may contribute.
    """
    if not any(child in KEEP_ALL for child in desired.children):
        return desired
    children = tuple(child for child in desired.children if child not in KEEP_ALL)
    named = {_named_target(part) for part in (*children, *desired.contributions)}
    keeps = (Keep(type(view), view.name) for view in observed.children)
    views = [(type(view), view) for view in observed.contributable]
    if controller.writes_resource and observed.resource:
        views.append((cast("type[View]", controller.resource), observed.resource))
    held = (
        Contribution(kind, view.name, declared_part(fields, controller.contributed[kind.api])[0])
        for kind, view in views
        if (fields := extract(view.raw, observed.field_manager))
    )
    return replace(
        desired,
        children=(*children, *(keep for keep in keeps if _named_target(keep) not in named)),
        contributions=(
            *desired.contributions,
            *(part for part in held if part.fields and _named_target(part) not in named),
        ),
    )


def declared_part(
    fields: Mapping[str, Any], declared: Iterable[tuple[str, ...]]
) -> tuple[Object, list[str]]:
    """Return those fields that are declared, and the highest paths at which nothing is."""
    below: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for first, *rest in declared:
        below[first].append(tuple(rest))
    part: Object = {}
    others: list[str] = []
    for name, value in fields.items():
        if () in below[name]:
            part[name] = value
        elif below[name] and isinstance(value, Mapping):
            inner, paths = declared_part(cast("Mapping[str, Any]", value), below[name])
            part |= {name: inner} if inner else {}
            others += (f"{name}.{path}" for path in paths)
        else:
            others.append(name)
    return part, others


def _wrong_status(desired: Desired, controller: Controller[Any]) -> str:
    """Return why a status cannot be that of the resource, which could not say so then; or nothing.

    One of a class from which that of the resource is derived has a part of its fields. A copy with
    updates may have values that its model does not take.
    """
    status, field = desired.status, controller.resource.model_fields.get("status")
    if status is None:
        return ""
    if field is not None and controller.is_custom:
        hints = get_args(field.annotation) or (field.annotation,)
        kinds = [hint for hint in hints if isinstance(hint, type) and hint is not NoneType]
        own = type(status)
        if kinds and not any(issubclass(own, kind) or issubclass(kind, own) for kind in kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            return f"{class_of(status)} as `status`, not {expected}"
    try:
        is_json = not _unlike_json(status.model_dump(mode="json", warnings="error"), 0)
    except PydanticSerializationError:
        is_json = False
    return "" if is_json else f"a {class_of(status)} with a value that its model does not take"


def _named_target(part: Child | Contribution) -> tuple[str, str]:
    """Return kind and name of a child or contribution; raises DeclarationError without a name."""
    if not isinstance(getattr(part.kind, "api", None), ApiResource):
        raise DeclarationError(f"compose returned a {part.kind.__qualname__}, which has no `api`")
    kind = part.kind.api.kind
    if type(part.name) is not str or not part.name:
        raise DeclarationError(f"compose returned a {kind} without a name")
    return kind, part.name


def _wrong(child: Child, controller: Controller[Any], resource: ObjectRef) -> str:
    """Return the mistake of a declared child, as text after its name; or nothing."""
    kind = child.kind.api.kind
    if child.kind not in controller.owns:
        is_other = any(owned.api == child.kind.api for owned in controller.owns)
        return f", but `owns` has {'another class of that kind' if is_other else f'no {kind}'}"
    if not isinstance(child, Apply | Create):
        return ""
    if not controller.allows_name(child.kind, resource.name, child.name):
        patterns = controller.names_of(child.kind)
        expected = " or ".join(pattern.replace("{}", resource.name) for pattern in patterns)
        return (
            f", but a {kind} of {resource.name} is named {expected}; other names are declared by"
            " `child_names`"
        )
    return _wrong_fields(child.fields) or _wrong_identity(child.fields)


def _wrong_identity(declared: Object) -> str:
    meta: Object = declared.get("metadata") or {}
    odd = [name for name in _TOP if name in declared]
    odd += [f"metadata.{name}" for name in _IDENTITY if name in meta]
    if not odd:
        return ""
    return (
        f" with the field {odd[0]}: leave it out, since kind and name are given beside the fields,"
        " and a child is in the namespace of its resource"
    )


def _wrong_fields(declared: Object) -> str:
    """Return the part of a declaration that cannot be sent, as text after its name; or nothing."""
    if misfit := _unlike_json(declared, 0):
        what, path = misfit
        return f" with {what} at {path.removeprefix('.') or 'the top'}: {_JSON}"
    meta: object = declared.get("metadata")
    places = {"metadata": meta}
    if isinstance(meta, dict):
        places["metadata.labels"] = cast("Object", meta).get("labels")
    for place, value in places.items():
        if not isinstance(value, dict | None):
            return f" with {class_of(value)} as {place}, where a dict belongs"
    return ""


def _unlike_json(value: object, depth: int) -> tuple[str, str] | None:
    """Return the first value that is no JSON, as words, and its path; or None.

    The server would refuse it, or store another value, which is then written at each pass.
    """
    members: Iterable[tuple[object, object]]
    if isinstance(value, dict):
        members = cast("dict[object, object]", value).items()
    elif isinstance(value, list):
        members = enumerate(cast("list[object]", value))
    else:
        what = _unlike_scalar(value)
        return (what, "") if what else None
    if depth > DEEPEST:
        return f"more than {DEEPEST} levels", ""
    for key, inner in members:
        if isinstance(value, dict) and not _is_text(key):
            return f"{class_of(key)} as a key", ""
        if misfit := _unlike_json(inner, depth + 1):
            what, path = misfit
            at = f".{key}" if isinstance(value, dict) else f"[{key}]"
            return what, "" if depth >= LONGEST_PATH else f"{at}{path}"
    return None


def _unlike_scalar(value: object) -> str:
    match value:
        case str():
            return "" if _is_text(value) else "a lone surrogate"
        case float() if not math.isfinite(value):
            return "a float that is no number"
        case bool() | int() | float() | None:
            return ""
        case _:
            return class_of(value)


def _is_text(text: object) -> bool:
    """Return whether a value is a text that can be sent: one without lone surrogates."""
    try:
        return isinstance(text, str) and (text.isascii() or text.encode() != b"")
    except UnicodeEncodeError:
        return False


def compose_failed(error: Exception) -> Problem:
    """Return the problem of a resource for which compose raised an error."""
    if isinstance(error, DeclarationError):
        return Problem(FAILED, str(error))
    frames = traceback.extract_tb(error.__traceback__)
    at = f" in {PurePath(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return Problem(FAILED, f"compose raised {type(error).__name__}{at}; the log has the rest")
