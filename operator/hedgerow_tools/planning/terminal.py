"""Plan on a terminal: a forecast in words, with who holds each field now on the right.

A resource of hedgerow's own has a heading and several sections, any other object is one section.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import UNSET
from msgspec.structs import replace
from rich.text import Text

from hedgerow.cli.program import program_name, typed
from hedgerow.cli.terminal import one_line
from hedgerow.fields.canonical import identical
from hedgerow.fields.ownership import BEFORE_FIRST_APPLY
from hedgerow.fields.paths import is_list, is_map, path_of
from hedgerow.fields.redaction import worded
from hedgerow.objects import PLACEHOLDER
from hedgerow.plan.conditions import LONGEST_MESSAGE
from hedgerow.plan.conflict_messages import values
from hedgerow.plan.remedies import overview
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow.texts import numbered, printable
from hedgerow_schemas.base import View
from hedgerow_tools.fields.allocated import UNKNOWN
from hedgerow_tools.fields.diff import change_of, moved_items
from hedgerow_tools.fields.forecast import facts
from hedgerow_tools.fields.relabelling import CLIENT_SIDE, KUBECTL
from hedgerow_tools.render.holders import short
from hedgerow_tools.render.times import age
from hedgerow_tools.render.widths import hanging, page_terminal, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from rich.console import Console

    from hedgerow_schemas.base import Condition, ContestedField, Object
    from hedgerow_tools.fields.diff import DifferenceKind, Line
    from hedgerow_tools.fields.forecast import Forecast, ObjectForecast, Planned

Tone = Literal["added", "changed", "removed", "alarm", "plain", "faint"]
_SIGNS = {
    "added": "+", "changed": "~", "removed": "-", "moved": "↕", "released": "<", "shared": "=",
}  # fmt: skip
_ACTIONS = {"created": "+", "configured": "~", "deleted": "-", "unchanged": "=", "unknown": "?"}
_WORDS = {
    "created": "would be created",
    "configured": "would be changed",
    "deleted": "would be deleted",
    "unchanged": "would not be changed",
    "refused": "would be refused",
    "unknown": "is not planned: the server gave no answer in time",
}
_TONES: dict[str, Tone] = {
    "created": "added", "configured": "changed", "deleted": "removed", "unchanged": "faint",
    "refused": "alarm", "unknown": "alarm",
}  # fmt: skip
_OWNERS = ".metadata.ownerReferences"
_FIRST_SHOWN = 3
_LONGEST_ITEM = 60
"""The most characters of a list item that moves."""
_IDLE_SHOWN = 10
"""The most objects that are named though nothing is to be done about them."""
_MOST_SETTLED = 10
"""The most contested fields that are shown with their remedies."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One line: its text, who holds the field now, and its colour.

    A `command` is never broken, so that it can be pasted.
    """

    text: str
    tone: Tone = "plain"
    holder: str = ""
    command: bool = False


LONGEST_CAUSE: Final = 4000
"""The most characters of a cause: it may quote a value, which the API server cuts by itself."""


@dataclass(frozen=True, slots=True)
class PlanSection:
    """A title, and lines below it."""

    title: str
    tone: Tone
    rows: tuple[PlanRow, ...] = ()


def sections(forecast: Forecast, now: datetime) -> Iterator[PlanSection]:
    """Yield a forecast's sections: objects first, then problems, then the rest."""
    if not forecast.controller:
        yield from _plain(forecast, now)
        return
    own, claims = _parted_claims(forecast)
    yield from (_object(obj) for obj in forecast.objects if _is_told(obj))
    refusals = (
        PlanRow(f"{refusal.object}: {printable(line, LONGEST_CAUSE)}", "alarm")
        for refusal in forecast.refusals
        for line in refusal.lines
    )
    yield from _section("Refused by the server", "alarm", refusals)
    yield from _section("Contested: these stay as they are", "alarm", _contested(forecast, now))
    yield from _section("Taken by force, as --force asks", "alarm", _held(own, now))
    yield from _section(f"Taken by force, as {CLAIM} asks", "alarm", _held(claims, now))
    yield from _section(f"Left to others, as {YIELD} asks", "plain", _held(forecast.yields, now))
    rows = (*_conditions(forecast.conditions), *_facts(forecast.status))
    yield from _section("Status", "plain", rows)
    yield from _section("Events", "plain", _events(forecast))
    yield from _section("Later", "plain", _later(forecast))
    yield from _section("Not checked", "faint", _unchecked(forecast))


def title(forecast: Forecast) -> str:
    """Return the resource's title: `BlueGreen shop/demo`, `Namespace shop`."""
    return f"{forecast.kind} {'/'.join(filter(None, (forecast.namespace, forecast.name)))}"


def summary(forecasts: Sequence[Forecast]) -> str:
    """Return the counts: `2 to create, 1 to change, 0 to delete, 1 contested`."""
    actions = Counter(o.action for f in forecasts for o in f.objects)
    contested = sum(len(f.contested) for f in forecasts)
    refused = sum(len(f.refusals) for f in forecasts)
    taken = sum(problem.reason == "NameTaken" for f in forecasts for problem in f.problems)
    counts = [f"{actions['created']} to create", f"{actions['configured']} to change"]
    counts.append(f"{actions['deleted']} to delete")
    forced = sum(len(f.claims) for f in forecasts)
    counts += [f"{forced} to take by force"] if forced else []
    counts += [f"{contested} contested"] if contested else []
    counts += [f"{refused} refused"] if refused else []
    unknown = sum(bool(f.unanswered) for f in forecasts)
    counts += [f"{unknown} without an answer"] if unknown else []
    counts += [f"{taken} with a name that is taken"] if taken else []
    return ", ".join(counts)


def _plain(forecast: Forecast, now: datetime) -> Iterator[PlanSection]:
    """Yield the section of an object that is not hedgerow's own, if there is something to tell."""
    [obj] = forecast.objects
    rows = list(_plain_rows(forecast, obj, now))
    if obj.action == "unchanged" and not rows:
        return
    words = _WORDS[obj.action]
    if forecast.contested:
        paths = {dispute.field.path for dispute in forecast.contested}
        words += f", for conflicts over {numbered(len(paths), 'field')}"
    elif obj.forced:
        words += f", {numbered(len(obj.forced), 'field')} by force"
    elif obj.action == "configured" and not any(line.is_change for line in obj.lines):
        words = "would stay as it is, and be held otherwise"
    sign = _ACTIONS.get(obj.action, "✗")
    yield PlanSection(f"{sign} {title(forecast)} {words}", _TONES[obj.action], tuple(rows))


def _plain_rows(forecast: Forecast, obj: ObjectForecast, now: datetime) -> Iterator[PlanRow]:
    for refusal in forecast.refusals:
        yield from (PlanRow(printable(line, LONGEST_CAUSE), "alarm") for line in refusal.lines)
    if forecast.unanswered:
        yield PlanRow(printable(forecast.unanswered, LONGEST_CAUSE), "alarm")
    contested = [dispute.field for dispute in forecast.contested]
    yield from (PlanRow(_differs(held), "alarm", _since(held, now)) for held in contested)
    remedies = (_remedy(forecast, held) for held in contested)
    yield from (PlanRow(text, "faint") for text in dict.fromkeys(remedies))
    yield from _rows(obj)
    paths = {line.path for line in obj.lines}
    rest = (held for held in forecast.claims if held.path not in paths)
    yield from (PlanRow(_differs(held), "changed", f"taken from {short(held)}") for held in rest)
    yield from (PlanRow(f"not checked: {text}", "faint") for text in forecast.unchecked)


def _remedy(forecast: Forecast, held: ContestedField) -> str:
    """Return what helps against a conflict over a field that the user applies."""
    if held.manager == CLIENT_SIDE:
        return (
            f"{KUBECTL} applied it without --server-side, and would change it so without a"
            " conflict; --force shows what a forced apply takes"
        )
    if held.manager == forecast.field_manager and not forecast.controller:
        return (
            f"what {short(held)} holds comes from other writes than applies, and is contested as"
            f" anybody's: `{typed()} adopt` moves it to the applies of"
            f" {printable(forecast.field_manager)}"
        )
    return "leave it out of the manifest, or force the apply: --force shows what that takes"


def _parted_claims(forecast: Forecast) -> tuple[list[ContestedField], list[ContestedField]]:
    """Return what the user takes by force, and what the operator does."""
    own = [held for held in forecast.claims if held.object == str(forecast)]
    return own, [held for held in forecast.claims if held not in own]


def _is_told(obj: ObjectForecast) -> bool:
    return obj.action != "unchanged" or bool(obj.warnings)


def _section(name: str, tone: Tone, rows: Iterable[PlanRow]) -> Iterator[PlanSection]:
    shown = tuple(rows)
    if shown:
        yield PlanSection(name, tone, shown)


def _object(obj: ObjectForecast) -> PlanSection:
    sign = _ACTIONS.get(obj.action, "✗")
    name = f"{sign} {obj} {_WORDS[obj.action]}"
    return PlanSection(name, _TONES[obj.action], tuple(_rows(obj)))


def _rows(obj: ObjectForecast) -> Iterator[PlanRow]:
    if obj.action == "deleted":
        held = Counter(h.manager for line in obj.lines for h in line.holders)
        counts = (f"{count} by {printable(name)}" for name, count in held.most_common())
        yield PlanRow(f"fields held: {', '.join(counts) or 'none'}", "faint")
        return
    shown, defaults = _parted(obj)
    for line in shown:
        is_forced = line.path in obj.forced
        for row in map(_line, _parts(line)):
            yield _taken(row, line) if is_forced else row
    if defaults:
        yield PlanRow(f"and {numbered(defaults, 'default')}", "faint")
    yield from _counted("shared", "would be held as well, unchanged", obj.lines)
    if obj.merged:
        yield PlanRow(f"the server was not asked: {obj.merged}", "alarm")
    yield from (
        PlanRow(f"warning: {printable(text, LONGEST_MESSAGE)}", "alarm") for text in obj.warnings
    )


def _taken(row: PlanRow, line: Line) -> PlanRow:
    """Return the row of a field that is taken by force; it says from whom."""
    holder = row.holder if line.holders else BEFORE_FIRST_APPLY.manager
    return PlanRow(row.text, row.tone, f"taken from {holder}")


def _parted(obj: ObjectForecast) -> tuple[list[Line], int]:
    """Return the lines to show, and how many others are only defaults of a new object."""
    lines = [line for line in obj.lines if line.kind != "shared"]
    shown = [line for line in lines if obj.action != "created" or line.after]
    return shown, len(lines) - len(shown)


def _counted(kind: str, words: str, lines: Iterable[Line]) -> Iterator[PlanRow]:
    paths = [_path(line) for line in lines if line.kind == kind]
    if paths:
        named = ", ".join(paths[:_FIRST_SHOWN]) + (", …" if len(paths) > _FIRST_SHOWN else "")
        yield PlanRow(f"{_SIGNS[kind]} {len(paths)} {words}: {named}", "faint")


def _line(line: Line) -> PlanRow:
    path, sign = _path(line), _SIGNS[line.kind]
    old, new = (_worded(line, value) for value in (line.old, line.new))
    match line.kind:
        case "added":
            return PlanRow(f"{sign} {path}: {new}", "added", _who(line))
        case "removed":
            return PlanRow(f"{sign} {path}: {old}", "removed", _who(line))
        case "released":
            return PlanRow(f"{sign} {path}: {new}, given up", "plain", _who(line))
        case "moved" if is_list(line.old) and is_list(line.new):
            return PlanRow(f"{sign} {path}: {_moves(line.old, line.new)}", "changed", _who(line))
        case _:
            return PlanRow(f"{sign} {path}: {old} -> {new}", "changed", _who(line))


def _moves(old: list[Any], new: list[Any]) -> str:
    """Return which items of a list move, each with the one that it comes before."""
    indices = moved_items(old, new)
    words: list[str] = []
    for index in indices[:_FIRST_SHOWN]:
        after = new[index + 1 : index + 2]
        where = f"before {_item(after[0], old)}" if after else "to the end"
        words.append(f"{_item(new[index], old)} moves {where}")
    more = [f"{len(indices) - _FIRST_SHOWN} more move"] if indices[_FIRST_SHOWN:] else []
    return _known(", ".join([*words, *more]))


def _item(item: Any, old: list[Any]) -> str:
    """Return a list item in a word: what is no single value by its place before."""
    if is_map(item) or is_list(item):
        return f"[{next(index for index, other in enumerate(old) if identical(other, item))}]"
    return printable(item, _LONGEST_ITEM) if isinstance(item, str) else worded(item)


def _parts(line: Line) -> Iterator[Line]:
    """Yield a line; for an atomic value, which is replaced as a whole, what differs inside it.

    Of lists that is so only if their items are maps, and as many as before.
    """
    old, new = _inside(line.old), _inside(line.new)
    alike = is_map(line.old) == is_map(line.new) and (is_map(line.old) or len(old) == len(new))
    if line.kind != "changed" or not (old and new and alike):
        yield line
        return
    for element in dict.fromkeys((*old, *new)):
        was, now = old.get(element), new.get(element)
        if not identical(was, now):
            kind: DifferenceKind = (
                "removed" if now is None else "added" if was is None else change_of(was, now)
            )
            path = f"{line.path}{path_of((element,))}"
            yield from _parts(replace(line, kind=kind, path=path, old=was, new=now))


def _inside(value: Any) -> dict[str, Any]:
    """Return what is inside a map, or a list of maps, by element; a number is a list's index."""
    if is_map(value):
        return {f"f:{name}": inner for name, inner in value.items()}
    if is_list(value) and all(map(is_map, value)):
        return {f"i:{index}": inner for index, inner in enumerate(value)}
    return {}


def _worded(line: Line, value: Any) -> str:
    """Return a value in one line; for an owner reference, only kind and name."""
    if value is UNSET:
        return ""
    if line.path.startswith(_OWNERS) and isinstance(value, dict):
        owner = View(cast("Object", value))
        controls = ", its controller" if owner.at("controller") else ""
        return printable(f"{owner.text('kind')}/{owner.text('name')}{controls}")
    return _known(worded(value))


def _who(line: Line) -> str:
    """Return who holds a field now, or that the server sets the value."""
    held = ", ".join(dict.fromkeys(short(holder) for holder in line.holders))
    if line.kind == "added":
        return held or ("" if line.after else "by the server")
    if line.kind == "changed" and not line.after:
        return f"{held or 'unowned'}; by the server"
    return held or "unowned"


def _path(line: Line) -> str:
    return _known(printable(line.path))


def _known(text: str) -> str:
    return text.replace(PLACEHOLDER, UNKNOWN)


def _contested(forecast: Forecast, now: datetime) -> Iterator[PlanRow]:
    settled, more = forecast.contested[:_MOST_SETTLED], forecast.contested[_MOST_SETTLED:]
    for dispute in settled:
        yield from _held((dispute.field,), now)
        for remedy in dispute.remedies:
            yield PlanRow(f"  {remedy.effect}:", "faint")
            yield PlanRow(remedy.command, "faint", command=True)
    yield from _held((dispute.field for dispute in more), now)
    for remedy in forecast.together:
        yield PlanRow(f"{remedy.effect}, in one command:", "faint")
        yield PlanRow(remedy.command, "faint", command=True)
    own, others = (
        [d.field for d in some if _is_own(forecast, d.field) is wanted]
        for some, wanted in ((forecast.contested, True), (more, False))
    )
    yield from (PlanRow(text, "faint") for text in dict.fromkeys(_remedy(forecast, f) for f in own))
    for target in dict.fromkeys(field.object for field in others):
        yield PlanRow(overview(target, forecast.namespace, typed()), "faint", command=True)
    taken = (problem for problem in forecast.problems if problem.reason == "NameTaken")
    yield from (PlanRow(printable(problem.message, LONGEST_MESSAGE), "alarm") for problem in taken)


def _since(held: ContestedField, now: datetime) -> str:
    """Return who holds a field, and since when."""
    return f"{short(held)}{f', {age(held.since.isoformat(), now)}' if held.since else ''}"


def _held(fields: Iterable[ContestedField], now: datetime) -> Iterator[PlanRow]:
    for held in fields:
        yield PlanRow(f"{held.object}: {_differs(held)}", "alarm", _since(held, now))


def _differs(held: ContestedField) -> str:
    """Return a field, and what is declared and there if that is known."""
    return ": ".join(filter(None, (printable(held.path), values(held, program_name()))))


def _is_own(forecast: Forecast, held: ContestedField) -> bool:
    """Return whether it is a field of the resource itself, which the user applies."""
    is_status = bool(forecast.controller) and held.path.startswith(".status.")
    return held.object == str(forecast) and not is_status


def _conditions(planned: Planned[tuple[Condition, ...]]) -> Iterator[PlanRow]:
    old, new = ({c.type: c for c in some} for some in (planned.before, planned.after))
    messages = {""}
    for kind in dict.fromkeys((*new, *old)):
        was, now = (_condition(some.get(kind)) for some in (old, new))
        if was != now:
            message = new[kind].message if kind in new else ""
            more = "" if message in messages else f": {printable(message, LONGEST_MESSAGE)}"
            messages.add(message)
            yield PlanRow(f"{kind}: {was} -> {now}{more}")


def _facts(status: Planned[Mapping[str, Any]]) -> Iterator[PlanRow]:
    """Yield what the status would say besides its conditions; -o json has all of it."""
    old, new = dict(facts(status.before)), dict(facts(status.after))
    for path in dict.fromkeys((*new, *old)):
        was, now = (printable(some.get(path, "not set")) for some in (old, new))
        if was != now:
            yield PlanRow(f"{printable(path)}: {was} -> {now}")


def _condition(condition: Condition | None) -> str:
    return f"{condition.status} ({condition.reason})" if condition else "not set"


def _events(forecast: Forecast) -> Iterator[PlanRow]:
    for event in forecast.events:
        tone: Tone = "alarm" if event.type == "Warning" else "plain"
        about = f"{event.type} {event.reason} on {event.regarding}: "
        yield PlanRow(f"{about}{printable(event.note, LONGEST_MESSAGE)}", tone)


def _later(forecast: Forecast) -> Iterator[PlanRow]:
    for obj in forecast.later:
        yield PlanRow(f"once every Deployment has rolled out, {obj} {_WORDS[obj.action]}")
        if obj.action == "configured":
            parts = (part for line in obj.lines if line.is_change for part in _parts(line))
            yield from (_indented(_line(part)) for part in parts)
    if forecast.looks_again_in_seconds is not None:
        seconds = int(forecast.looks_again_in_seconds)
        yield PlanRow(f"the operator looks again in {seconds} s, and may then do more")


def _indented(row: PlanRow) -> PlanRow:
    return PlanRow(f"  {row.text}", row.tone, row.holder)


def _unchecked(forecast: Forecast) -> Iterator[PlanRow]:
    yield from (PlanRow(text, "faint") for text in forecast.unchecked)
    for why in dict.fromkeys(obj.merged for obj in forecast.objects if obj.merged):
        names = [str(obj) for obj in forecast.objects if obj.merged == why]
        yield PlanRow(f"defaults, validation and admission of {', '.join(names)}: {why}", "faint")
    deleted = [str(o) for o in forecast.objects if o.action == "deleted"]
    if deleted:
        yield PlanRow(f"whether admission lets {', '.join(deleted)} be deleted", "faint")


_STYLES = {
    "added": "green", "changed": "yellow", "removed": "red", "alarm": "bold red",
    "plain": "", "faint": "dim",
}  # fmt: skip
_NARROW = 100
"""With fewer columns, the holder is printed below the field."""
_MARGIN = 4
_GAP = 2


def show(
    forecasts: Sequence[Forecast],
    now: datetime,
    console: Console | None = None,
    *,
    heading: str = "",
) -> None:
    """Print forecasts, below a heading if there is one; long lines are wrapped, never cut."""
    out = console or page_terminal()
    if heading:
        _wrapped(out, one_line(heading, "bold"))
        out.print()
    for forecast in forecasts:
        shown = list(sections(forecast, now))
        if forecast.controller:
            _show_resource(out, forecast, shown)
            continue
        for section in shown:
            _print(out, section)
            out.print()
    idle = [f for f in forecasts if not f.controller and not any(sections(f, now))]
    if idle:
        named = ", ".join(map(title, idle[:_IDLE_SHOWN])) + (", …" if idle[_IDLE_SHOWN:] else "")
        what = numbered(len(idle), "object")
        _wrapped(out, one_line(f"Nothing to do for {what}: {named}", "dim"))
        out.print()
    _wrapped(out, Text.assemble((summary(forecasts), "bold"), ("; nothing was written", "dim")))


def _show_resource(out: Console, forecast: Forecast, shown: Iterable[PlanSection]) -> None:
    writer = f"  controller {forecast.controller}, field manager {forecast.field_manager}"
    _wrapped(out, Text.assemble(one_line(title(forecast), "bold"), (writer, "dim")))
    for section in shown:
        out.print()
        _print(out, section)
    out.print(*([] if shown else [Text("  nothing to do", "dim")]))


def _wrapped(out: Console, text: Text) -> None:
    for line in wrapped(text, out.width):
        _say(out, line)


def _print(out: Console, section: PlanSection) -> None:
    _say(out, one_line(section.title, _STYLES[section.tone]))
    wide = out.width >= _NARROW and any(row.holder for row in section.rows)
    rows = [
        (one_line(row.text, _STYLES[row.tone]), one_line(row.holder, "cyan"))
        for row in section.rows
    ]
    right = max((holder.cell_len for _, holder in rows), default=0) + _GAP if wide else 0
    left = out.width - _MARGIN - right
    column = min(max((text.cell_len for text, holder in rows if holder), default=0), left)
    for row, (text, holder) in zip(section.rows, rows, strict=True):
        if row.command:
            _say(out, Text(" " * _MARGIN * 2).append(text))
            continue
        first, *more = hanging(text, left if holder else out.width - _MARGIN, _MARGIN)
        if wide and holder:
            first.pad_right(column - first.cell_len)
            first.append(" " * _GAP).append(holder)
        below = [] if wide or not holder else hanging(holder, left - _MARGIN, _MARGIN)
        for line in (first, *(_deeper(line) for line in (*more, *below))):
            _say(out, Text(" " * _MARGIN).append(line))


def _deeper(line: Text) -> Text:
    return Text(" " * _MARGIN).append(line)


def _say(out: Console, line: Text) -> None:
    out.print(line, soft_wrap=True)
