"""Purity: compose returns the same for the same input, or a test in memory fails."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from hedgerow.contract import KEEP_ALL, Desired
from hedgerow.contract.hints import misfits
from hedgerow.plan.declaration import ComposeError

if TYPE_CHECKING:
    from hedgerow.contract import Controller, Observed


class NotPureError(ComposeError):
    """Compose returns something else for the same input."""


def proven(controller: Controller[Any]) -> Controller[Any]:
    """Return a controller whose compose is called twice at each look, about the very same.

    It raises NotPureError with the first path that differs, such as `ConfigMap/x .data.time`.
    """

    def compose(resource: Any, observed: Observed) -> Any:
        answers: list[Any] = [controller.compose(resource, observed) for _ in range(2)]
        for answer in answers:  # the runtime says what is wrong with it
            if not isinstance(answer, Desired) or any(misfits(answer, Desired)):
                return answer
        desired, again = answers
        if path := difference(desired, again):
            raise NotPureError(
                f"compose returns another {path} for the same input: for the time, use observed.now"
            )
        return desired

    return replace(controller, compose=compose)


def difference(left: Desired, right: Desired) -> str:
    """Return where two declarations differ first, such as `ConfigMap/x .data.time`; or nothing."""
    return "" if left == right else _difference(_named(left), _named(right), "").strip(" .")


def _named(desired: Desired) -> dict[str, Any]:
    """Return the parts of a declaration, children and contributions by kind and name."""
    parts = {part.name: getattr(desired, part.name) for part in fields(desired)}
    for part in ("children", "contributions"):
        for item in parts.pop(part):
            name = "KEEP_ALL" if item in KEEP_ALL else f"{item.kind.api.kind}/{item.name} "
            parts[name] = item
    return parts


def _difference(left: Any, right: Any, path: str) -> str:
    left, right = _parts(left), _parts(right)
    if isinstance(left, dict) and isinstance(right, dict):
        first, second = cast("dict[Any, Any]", left), cast("dict[Any, Any]", right)
        for name in dict.fromkeys((*first, *second)):
            if name not in first or name not in second:
                return f"{path}.{name}"
            if place := _difference(first[name], second[name], f"{path}.{name}"):
                return place
        return ""
    return "" if left == right else path


def _parts(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        return parts.pop("fields", {}) | parts
    if isinstance(value, list | tuple):
        return dict(enumerate(cast("list[Any]", value)))
    return value
