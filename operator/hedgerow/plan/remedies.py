"""Remedies: the commands that settle a contested field, ready to paste into a shell.

Only commands that work are offered: for example, a field that selects pods is never taken by force,
and a field that nobody holds cannot be yielded. The same rules say why an annotation has no effect.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hedgerow.encoding import encode
from hedgerow.fields.ownership import BEFORE_FIRST_APPLY
from hedgerow.objects import PROGRAM, controller_reference, renamed
from hedgerow.plan.conflict_messages import DECLARED_NO_MORE, REMOVED, SCALED_TO_ZERO, UNKNOWN_OWNER
from hedgerow.plan.installations import remedy
from hedgerow.plan.yield_and_claim import (
    CLAIM,
    YIELD,
    FieldPolicyError,
    allow_claims,
    field_policy_of,
    is_controller_label,
    is_fixed,
    is_ours,
    parts,
    place_of,
)
from hedgerow.texts import command_line, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hedgerow.fields.sets import FieldPath
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import ContestedField

LEAVE: Final = "To leave it as it is"
TAKE: Final = "To take it back"
REMOVE: Final = "To remove it"
RESTORE: Final = "To put it back"
CLAIMABLE: Final = ", where the namespace allows claims"
LET_GO: Final = "To make that other hedgerow release it, once it has stopped for good"
WRITE: Final = "To write it again"
ALLOW: Final = "To take it back, as the claim says: let the namespace allow claims"
LONGEST_COMMAND: Final = 600
"""The most characters of a command for several objects: a condition's message has 1024."""


class Remedy(Struct, frozen=True):
    """A command, and its effect in words."""

    effect: str
    command: str

    def __str__(self) -> str:
        """Return effect and command as a sentence."""
        return f"{self.effect}: `{self.command}`"


def remedies(
    resource: ObjectRef,
    annotations: Mapping[str, str],
    field: ContestedField,
    *,
    program: str = PROGRAM,
    command: str = "",
) -> tuple[Remedy, ...]:
    """Return the remedies for a contested field of a child of `resource`, or of its own status.

    `annotations` are the resource's; the commands keep what they already yield and claim. They are
    those of the `program` that manages it, which is called by `command`.
    """
    if released := remedy(field.manager or "", field.operation, program, command):
        return (Remedy(renamed(LET_GO, program), released),)
    return tuple(_remedies(resource, annotations, field, command or program))


def _remedies(
    resource: ObjectRef, annotations: Mapping[str, str], field: ContestedField, called: str
) -> Iterator[Remedy]:
    adopt = partial(_adopt, called=called)
    field_path = place_of(field.path)
    if field.object == str(resource) and field.path.startswith(".status"):
        yield adopt(resource, WRITE, own(resource), field)
    elif field.reason == DECLARED_NO_MORE:
        # before-first-apply holds the item itself, so the whole item is adopted.
        whole = field.manager == BEFORE_FIRST_APPLY.manager
        yield adopt(resource, REMOVE, field.object, field, "" if whole else f"{field.path}.**")
    elif field.reason in (REMOVED, SCALED_TO_ZERO):
        if not (is_ours(field_path) or is_fixed(field_path)):
            yield from annotate(resource, annotations, CLAIM, RESTORE, field)
    elif field.reason == UNKNOWN_OWNER:
        yield from annotate(resource, annotations, YIELD, LEAVE, field)
        yield adopt(resource, REMOVE, field.object, field)
    else:
        if not is_ours(field_path):
            yield from annotate(resource, annotations, YIELD, LEAVE, field)
        if field.manager == BEFORE_FIRST_APPLY.manager:
            yield adopt(resource, TAKE, field.object, field)
        elif is_controller_label(field_path) and field.declared:
            yield _label(resource, field)
        elif is_ours(field_path) or is_fixed(field_path):
            yield adopt(resource, TAKE, field.object, field, field.path)
        else:
            yield from annotate(resource, annotations, CLAIM, TAKE, field)


def overview(target: str, namespace: str, program: str = PROGRAM) -> str:
    """Return the command that shows an object's contested fields with all remedies."""
    return command_line(program, "owners", target, "--contested", *within(namespace))


def owned_again(resource: ObjectRef, targets: Iterable[ObjectRef]) -> tuple[str, int]:
    """Return the command that makes objects without owner children of a resource, and of how many.

    It has as many of them as 600 characters have room for, but at least one. Each has no owner
    reference: the patch replaces all.
    """
    reference = {"metadata": {"ownerReferences": [controller_reference(resource)]}}
    ending = ("--type=merge", "-p", encode(reference).decode(), *within(resource.home))
    command, number = "", 0
    names: list[str] = []
    for target in targets:
        names.append(own(target))
        longer = command_line("kubectl", "patch", *names, *ending)
        if number and len(longer) > LONGEST_COMMAND:
            break
        command, number = longer, number + 1
    return command, number


def own(resource: ObjectRef) -> str:
    """Return a resource as commands take it, with its group: other groups may have the kind too."""
    return f"{'.'.join(filter(None, (resource.api.kind, resource.api.group)))}/{resource.name}"


def without_effect(word: str, reason: str, field_path: FieldPath) -> str:
    """Return why an entry of annotation `word` has no effect on a field contested for `reason`."""
    if is_ours(field_path):
        return "fields that mark a child as hedgerow's can be neither yielded nor claimed"
    if reason in (DECLARED_NO_MORE, UNKNOWN_OWNER):
        return "a list item that is no longer declared is removed when it is adopted"
    if reason in (REMOVED, SCALED_TO_ZERO):
        return "nobody else holds it" if word == YIELD else "it is yielded as well"
    if word == YIELD:
        return "it is part of a value that is held as a whole"
    if is_fixed(field_path):
        return "a field that selects pods, or names an object or item, is never taken by force"
    return "it is yielded as well"


def _adopt(
    resource: ObjectRef,
    effect: str,
    target: str,
    field: ContestedField,
    only: str = "",
    *,
    called: str,
) -> Remedy:
    which = ("--field", only.removeprefix(".")) if only else ()
    place = resource.namespace if target == own(resource) else resource.home
    words = ("adopt", target, "--from", field.manager or "", *which, *within(place))
    return Remedy(effect, command_line(called, *words))


def _label(resource: ObjectRef, field: ContestedField) -> Remedy:
    """Return the command that writes the declared label.

    The watches select by it. Whoever only adopts it leaves the other value there, so that nothing
    tells the operator to write its own.
    """
    key = field.path.removeprefix(".metadata.labels.")
    words = (
        "label",
        "--overwrite",
        field.object,
        f"{key}={field.declared}",
        *within(resource.home),
    )
    return Remedy(TAKE, command_line("kubectl", *words))


def annotate(
    resource: ObjectRef,
    annotations: Mapping[str, str],
    word: str,
    effect: str,
    *fields: ContestedField,
) -> Iterator[Remedy]:
    """Yield the command that also yields or claims fields; nothing if no term can name one.

    What the annotation says already is not offered once more: a claim lacks the namespace's label,
    and what is yielded without effect stays so. On a cluster-scoped resource no claim has effect.
    """
    if word == CLAIM and not resource.namespace:
        return
    before = annotations.get(word, "")
    written = [part.replace("\n", " ").strip() for part in parts(before)]
    has_effect = _effect_of(word, annotations)
    added = [field for field in fields if not has_effect(field)]
    if not added:
        if word == CLAIM:
            yield Remedy(ALLOW, allow_claims(resource.namespace))
        return
    terms = [f"{field.object}: {field.path.removeprefix('.')}" for field in added]
    text = "; ".join(filter(None, (*written, *terms)))
    # An escaped character would mean something else where the command is pasted.
    if not text.isprintable():
        return
    if all(map(_effect_of(word, {**annotations, word: text}), fields)):
        kind = ".".join(filter(None, (resource.api.plural, resource.api.group)))
        overwrite = ("--overwrite",) if word in annotations else ()
        words = (*overwrite, kind, resource.name, f"{word}={text}", *within(resource.namespace))
        where = CLAIMABLE if word == CLAIM else ""
        yield Remedy(f"{effect}{where}", command_line("kubectl", "annotate", *words))


def _effect_of(word: str, annotations: Mapping[str, str]) -> Callable[[ContestedField], bool]:
    """Return whether these annotations yield a field, or claim it and do not yield it."""
    try:
        field_policy = field_policy_of(annotations)
    except FieldPolicyError:
        return lambda _: False

    def has_effect(field: ContestedField) -> bool:
        kind, _, name = field.object.partition("/")
        is_yielded, is_claimed = (
            any(entry.covers(kind, name, field.path) for entry in some)
            for some in (field_policy.yields, field_policy.claims)
        )
        return is_yielded if word == YIELD else is_claimed and not is_yielded

    return has_effect
