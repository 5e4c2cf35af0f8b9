"""Hints: whether what an author declares is of the types that the contract gives it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from hedgerow.contract.controller import BuiltIn, Controller, ControllerOptions, Lag, Option
from hedgerow.contract.desired import Apply, Child, Claim, Create, Desired, Keep, Notice
from hedgerow.contract.observed import Observed
from hedgerow.contract.relations import Claimable, Fields, Key, Relation
from hedgerow.validation import FieldError
from hedgerow_schemas.base import ApiResource, Object, Status, View

PARTS: Final = (
    Controller, BuiltIn, Relation, Claimable, ControllerOptions, Option, Lag, ApiResource,
    Desired, Apply, Create, Keep, Claim, Notice,
)  # fmt: skip
NAMES: Final[Mapping[str, Any]] = {
    "Callable": Callable, "Child": Child, "FieldError": FieldError, "Fields": Fields,
    "Iterable": Iterable,
    "Key": Key, "Mapping": Mapping, "Object": Object, "Observed": Observed, "Status": Status,
    "View": View, "datetime": datetime, "timedelta": timedelta,
    **{part.__name__: part for part in PARTS},
}  # fmt: skip
"""The names in annotations of the contract, many of which are imported for them alone."""
_CALLABLE: Final = cast("object", Callable)
_LENIENT: Final = (Desired, Apply, Create, Keep, Claim, Notice)
"""What compose returns: names have a sentence of their own there, and anything is true or false."""


def misfits(value: object, hint: Any, place: str = "") -> Iterator[str]:
    """Yield each value that is not of its type, such as "int as `requeue_after`, not timedelta".

    A list is as good as a tuple. The parts of a dataclass of the contract are looked at as well.
    """
    if get_origin(hint) is UnionType:
        hint = next((each for each in get_args(hint) if _fits(value, each)), hint)
    origin = get_origin(hint)
    if origin is tuple and isinstance(value, tuple | list):
        for number, item in enumerate(cast("list[object]", value)):
            yield from misfits(item, get_args(hint)[0], f"{place}[{number}]")
    elif origin is Mapping and isinstance(value, Mapping):
        for key, inner in cast("Mapping[object, object]", value).items():
            yield from _misfits_of_entry(key, inner, hint, place)
    elif origin is _CALLABLE and callable(value):
        if wrong := _wrong_call(value, len(get_args(hint)[0])):
            yield f"a function as `{place}` {wrong}"
    elif not _fits(value, hint):
        yield f"{class_of(value)} as `{place}`, not {_words(hint)}{_advice(value, hint)}"
    else:
        yield from _misfits_within(value, place)


def _misfits_within(value: object, place: str) -> Iterator[str]:
    part = next((part for part in PARTS if isinstance(value, part)), None)
    for name, inner, plain in _hints(part) if part else ():
        given: object = getattr(cast("object", value), name)
        if not isinstance(given, plain):
            yield from misfits(given, inner, f"{place}.{name}".removeprefix("."))


def _misfits_of_entry(key: object, value: object, hint: Any, place: str) -> Iterator[str]:
    of_key, of_value = get_args(hint)
    yield from misfits(key, of_key, f"a key of {place}")
    name = key.__name__ if isinstance(key, type) else key
    yield from misfits(value, of_value, f"{place}[{name}]")


@cache
def _hints(part: type[Any]) -> tuple[tuple[str, Any, tuple[type[Any], ...]], ...]:
    """Return a dataclass's fields: name, type, and the classes of which every object is right."""
    hints = get_type_hints(part, localns=dict(NAMES))
    left_out = ("name", "anew") if part in _LENIENT else ("_",)
    return tuple((name, hint, _plain(hint)) for name, hint in hints.items() if name not in left_out)


def _plain(hint: Any) -> tuple[type[Any], ...]:
    if get_origin(hint) is UnionType:
        return tuple(one for each in get_args(hint) for one in _plain(each))
    kind: Any = dict if get_origin(hint) is dict else hint
    return (kind,) if isinstance(kind, type) and kind not in PARTS else ()


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is UnionType:
        return any(_fits(value, each) for each in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is type:
        return isinstance(value, type) and issubclass(value, _bound(hint))
    return isinstance(value, origin or hint)


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
        *before, last = (_words(each) for each in get_args(hint) if each is not NoneType)
        return f"{', '.join(before)} or {last}" if before else last
    if origin is type:
        return f"a class derived from {_bound(hint).__name__}"
    if origin is _CALLABLE:
        return "a function"
    return (origin or hint).__name__ if isinstance(origin or hint, type) else repr(hint)


def _advice(value: object, hint: Any) -> str:
    """Return how a value would be right, if it is plain what was meant."""
    if get_origin(hint) is type and isinstance(value, str):
        return ": write the class, without quotes"
    if get_origin(hint) is tuple:
        (item, *_) = get_args(hint)
        if isinstance(value, str) and get_origin(item) is type and value.isidentifier():
            return f": write `({value},)`"
        if isinstance(value, str) and item is str:
            return f": write `({value!r},)`"
        if _fits(value, item):
            return f": write `({value.__name__ if isinstance(value, type) else '…'},)`"
    if timedelta in (hint, *get_args(hint)) and isinstance(value, int | float):
        return f": write `timedelta(seconds={value})`"
    return ""


def class_of(value: object) -> str:
    """Return a value's class as text; a class is named itself."""
    return f"the class {value.__qualname__}" if isinstance(value, type) else type(value).__name__
