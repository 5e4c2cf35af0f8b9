"""Selector: a label selector held against labels, and its string form.

The semantics are those of apimachinery's `metav1.LabelSelectorAsSelector`. What is ill-typed
selects nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hedgerow.core.contract import Key


def matches(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Tell whether a label selector selects an object of these labels; an empty one selects all."""
    return all(_holds(*requirement, labels) for requirement in _requirements(selector))


def text(selector: Mapping[str, Any]) -> str:
    """Give the string form that kubectl and autoscalers parse: `a=b,c in (d,e),!f`."""
    spelled = sorted(_requirements(selector), key=lambda requirement: requirement[0])
    return ",".join(_spelled(*requirement) for requirement in spelled)


def names(label: str) -> Callable[[View], tuple[Key, ...]]:
    """Give what names the resource that an object concerns: the value of this label."""

    def of(obj: View) -> tuple[Key, ...]:
        name = obj.text("metadata", "labels", label)
        return ((obj.namespace, name),) if name else ()

    return of


def _requirements(selector: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    view = View(selector)
    for key, value in view.mapping("matchLabels").items():
        yield key, "=", (str(value),)
    for expression in view.items("matchExpressions"):
        one = View(expression)
        values = tuple(sorted(map(str, one.items("values"))))
        yield one.text("key"), one.text("operator"), values


def _holds(key: str, operator: str, values: tuple[str, ...], labels: Mapping[str, Any]) -> bool:
    match operator:
        case "=" | "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def _spelled(key: str, operator: str, values: tuple[str, ...]) -> str:
    match operator:
        case "=":
            return f"{key}={values[0]}"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return f"{key} {operator.lower()} ({','.join(values)})"
