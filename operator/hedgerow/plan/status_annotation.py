"""Status annotation: on a built-in resource, the counterpart of a custom resource's status.

It is one annotation with compact JSON: the conditions that are not usual, and the contested fields.
It is there only while there is something to say. Like a status it is also the memory that survives
a restart. Values of fields are not in it: they may change often, and may be secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.encoding import decode, encode
from hedgerow.fields.managed_fields import entry
from hedgerow.fields.sets import subtree
from hedgerow.objects import annotation
from hedgerow.plan.conditions import UNMATCHED
from hedgerow_schemas.base import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow_schemas.base import Condition, ContestedField, Object

STATUS_ANNOTATION: Final = "hedgerow.dev/status"
MOST_CONDITIONS: Final = 8
MOST_FIELDS: Final = 8
LONGEST_PATH: Final = 256
LONGEST: Final = 32 * 1024
"""The most characters that it has: each message has at most 1,024, twice as many if escaped."""
_SAID: Final = ("conditions", "contested", "contestedCount")
_PLACE: Final = ("f:metadata", "f:annotations", f"f:{STATUS_ANNOTATION}")


def said(live: Object) -> Status:
    """Return the annotation as a status; an empty one if it is absent or unreadable.

    Whoever may write the object may write anything there, and it is read several times in a pass:
    a text that cannot be ours is not parsed.
    """
    text = annotation(live, STATUS_ANNOTATION)
    if not text or len(text) > LONGEST:
        return Status()
    try:
        read = decode(text.encode())
        read = {name: value for name, value in read.items() if name in _SAID}
        for name, most in (("conditions", MOST_CONDITIONS), ("contested", MOST_FIELDS)):
            if isinstance(read.get(name), list):
                read[name] = read[name][:most]
        return Status.model_validate(read)
    except (AttributeError, ValueError):
        return Status()


def held(live: Object, manager: str) -> str:
    """Return the annotation if this manager holds it, else an empty text."""
    tree = entry(live, manager)
    holds = tree is not None and subtree(tree, _PLACE) is not None
    return annotation(live, STATUS_ANNOTATION) if holds else ""


def text(
    conditions: Iterable[Condition], contested: Sequence[ContestedField], count: int = 0
) -> str:
    """Return the annotation for these conditions and fields; empty if all is as usual.

    Usual are `Ready` that is true, and every other condition that is false. Policy entries that
    match nothing are not usual. The text has at most eight conditions and eight fields; `count` is
    the number of contested fields.
    """
    unusual = [condition for condition in conditions if not _is_usual(condition)]
    fields = [field for field in contested if len(field.path) <= LONGEST_PATH][:MOST_FIELDS]
    if not unusual and not contested:
        return ""
    said = {
        "conditions": [_condition(condition) for condition in unusual[:MOST_CONDITIONS]],
        "contested": [_field(field) for field in fields],
        "contestedCount": count,
    }
    return encode({name: value for name, value in said.items() if value}).decode()


def _is_usual(condition: Condition) -> bool:
    is_ready = condition.type == "Ready"
    return condition.status == str(is_ready) and UNMATCHED not in condition.message


def _condition(condition: Condition) -> Object:
    shown = condition.model_copy(
        update={"last_transition_time": None, "observed_generation": None}
    ).wire()
    return {name: value for name, value in shown.items() if value}


def _field(field: ContestedField) -> Object:
    shown = field.model_copy(update={"declared": None, "live": None}).wire()
    return {name: value for name, value in shown.items() if value}
