"""Hints: whether what an author declares is of the types that the contract gives it."""

from __future__ import annotations

import collections.abc
import datetime as dt
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from hedgerow import contract, validation
from hedgerow_schemas import base

_NAMES: Final[dict[str, Any]] = {
    name: value
    for module in (collections.abc, dt, base, validation, contract)
    for name, value in vars(module).items()
}
"""The types that the contract's modules import for their annotations alone."""
_CALLABLE: Final = cast("object", Callable)
_PLAIN: Final = frozenset({str, dict, bool})


def misfits(value: object, hint: Any, place: str = "") -> Iterator[str]:
    """Yield each value that is not of its type, such as "int as `requeue_after`, not timedelta".

    The parts of a dataclass are looked at as well, but for those that are left at their default. A
    list is as good as a tuple; and anything but a text is true or false.
    """
    if get_origin(hint) is UnionType:
        hint = next((member for member in get_args(hint) if _fits(value, member)), hint)
    if not _fits(value, hint):
        yield f"{class_of(value)} as `{place}`, not {_words(hint)}{_advice(value, hint)}"
    elif get_origin(hint) is _CALLABLE:
        if wrong := _wrong_call(cast("Any", value), len(get_args(hint)[0])):
            yield f"a function as `{place}` {wrong}"
    else:
        for part, its_hint, at in _parts(value, hint, place):
            yield from misfits(part, its_hint, at)


def _parts(value: Any, hint: Any, place: str) -> Iterator[tuple[object, Any, str]]:
    """Yield the parts of a value, each with its type and place."""
    if get_origin(hint) is tuple:
        for number, item in enumerate(value):
            yield item, get_args(hint)[0], f"{place}[{number}]"
    elif get_origin(hint) is Mapping:
        of_key, of_value = get_args(hint)
        for key, inner in value.items():
            yield key, of_key, f"a key of {place}"
            yield inner, of_value, f"{place}[{key.__name__ if isinstance(key, type) else key}]"
    elif is_dataclass(hint):
        defaults = _defaults_of(hint)
        for name, of_field in hints_of(hint).items():
            part = getattr(value, name)
            is_plain = type(part) is of_field and of_field in _PLAIN
            if part is not defaults[name] and not is_plain:  # most are one or the other
                yield part, of_field, f"{place}.{name}".removeprefix(".")


@cache
def hints_of(part: type[Any]) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields, by their names."""
    hints = get_type_hints(part, localns=_NAMES)
    types = {field.name: hints[field.name] for field in fields(part)}
    return {name: dict if get_origin(hint) is dict else hint for name, hint in types.items()}


@cache
def _defaults_of(part: type[Any]) -> Mapping[str, Any]:
    return {field.name: field.default for field in fields(part)}


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is UnionType:
        return any(_fits(value, member) for member in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is type:
        return isinstance(value, type) and issubclass(value, _bound(hint))
    if hint is bool:
        return not isinstance(value, str)
    return isinstance(value, (tuple, list) if origin is tuple else origin or hint)


def _bound(hint: Any) -> type[Any]:
    """Return the class of which `type[…]` takes a subclass."""
    (kind,) = get_args(hint)
    bound: Any = kind.__bound__ if isinstance(kind, TypeVar) else kind
    return bound


def _wrong_call(function: Callable[..., object], arguments: int) -> str:
    """Return why a function cannot be called with so many arguments; or nothing."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "that is `async`: it is called without `await`, so write `def`"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one of C's
        return ""
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return f"that does not take {arguments} arguments, but `{signature}`"
    return ""


def _words(hint: Any) -> str:
    """Return a type as text: `Apply, Create or Keep`."""
    origin = get_origin(hint)
    if origin in (UnionType, Literal):
        *before, last = (_words(member) for member in get_args(hint) if member is not NoneType)
        return f"{', '.join(before)} or {last}" if before else last
    if origin is type:
        return f"a class derived from {_bound(hint).__name__}"
    if origin is _CALLABLE:
        return "a function"
    return (origin or hint).__name__ if isinstance(origin or hint, type) else repr(hint)


def _advice(value: object, hint: Any) -> str:
    """Return how to write a value, if its author's intention is plain; or nothing."""
    if get_origin(hint) is type and isinstance(value, str):
        return ": write the class, without quotes"
    if get_origin(hint) is tuple:
        (item, *_) = get_args(hint)
        if isinstance(value, str) and (item is str or get_origin(item) is type):
            return f": write `({value!r},)`" if item is str else f": write `({value},)`"
        if _fits(value, item):
            return f": write `({value.__name__ if isinstance(value, type) else '…'},)`"
    if dt.timedelta in (hint, *get_args(hint)) and isinstance(value, int | float):
        return f": write `timedelta(seconds={value})`"
    return ""


def class_of(value: object) -> str:
    """Return a value's class as text; a class is named itself."""
    return f"the class {value.__qualname__}" if isinstance(value, type) else type(value).__name__
