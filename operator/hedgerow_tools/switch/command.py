"""Promote and rollback, as typed: `hedgerow promote NAME` and `hedgerow rollback NAME`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import typer

from hedgerow.cli import targets
from hedgerow.cli.candidates import bluegreens
from hedgerow.cli.connecting import connected, of_namespace
from hedgerow.cli.exits import CommandError, Exit
from hedgerow.cli.options import duration
from hedgerow.cli.output import echo
from hedgerow.cli.program import installation
from hedgerow.objects import ObjectRef
from hedgerow.texts import printable
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_tools import interrupts
from hedgerow_tools.fields.diff import difference
from hedgerow_tools.fields.transfers import Change, MoveRefused
from hedgerow_tools.objects.writing import ATTEMPTS, Subject, pause, until_settled
from hedgerow_tools.render.holders import change_words, holder_words
from hedgerow_tools.switch import decision, other_holders

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow_schemas.base import Object
    from hedgerow_tools.switch.decision import Setting, SwitchEnd

_LONGEST_WAIT: Final = 3600.0
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", autocompletion=bluegreens, help="The BlueGreen.", show_default=False
    ),
]
Wait = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="How long to wait until the switch has ended; it fails if that is not enough, or if"
        " the switch ends otherwise.",
    ),
]


@of_namespace
def promote_command(
    name: Name,
    *,
    wait: Wait = "0s",
) -> None:
    """Let a BlueGreen's switch go on that spec.hold holds back.

    The command sets spec.promoted to the template that waits: the hash in status.switch.template.
    Another template, such as that of a later change, waits again. It works while status.phase is
    Held, and otherwise says what the switch waits for.

    The field manager hedgerow-promote applies this one field, by force where nobody or a person's
    tool holds it, such as kubectl: you asked for it by name. It is left to Helm, Argo CD, Flux and
    whoever else would put it back; the command says what to change there (exit code 3).

    - `hedgerow promote demo --wait 5m` waits until the switch has ended
    - `kubectl patch bluegreen demo --type merge -p '{"spec":{"promoted":"HASH"}}'` does it by hand
    """
    order = _Order(name, decision.promotion, "promote", duration("--wait", wait, _LONGEST_WAIT))
    _run(order)


@of_namespace
def rollback_command(
    name: Name,
    *,
    wait: Wait = "0s",
) -> None:
    """Send a BlueGreen's traffic back to the other colour.

    The command sets spec.routeTo to the other colour: while a switch is under way, that is where it
    came from, otherwise what was routed before. The operator goes back at once if that colour's
    pods are still those that were routed; otherwise checks and spec.hold apply. A second rollback
    goes forward again.

    The field manager hedgerow-rollback applies this one field, by force where nobody or a person's
    tool holds it, such as kubectl: you asked for it by name. It is left to Helm, Argo CD, Flux and
    whoever else would put it back; the command says what to change there (exit code 3).

    - `kubectl patch bluegreen demo --type merge -p '{"spec":{"routeTo":"Blue"}}'` does it by hand
    """
    order = _Order(name, decision.rollback, "rollback", duration("--wait", wait, _LONGEST_WAIT))
    _run(order)


@dataclass(frozen=True, slots=True)
class _Order:
    """What is asked for: how to find the field that is set, as whom, and how long to wait."""

    name: str
    decide: Callable[[Object], Setting]
    command: str
    patience: float

    @property
    def manager(self) -> str:
        """The field manager of the command, which holds its field and nothing else."""
        return installation().common_manager(self.command)


@dataclass(frozen=True, slots=True)
class _Done:
    """What was set, and the object before and afterwards; they are the same if it was so before."""

    setting: Setting
    before: Object
    after: Object

    @property
    def is_new(self) -> bool:
        return self.after is not self.before


def _run(order: _Order) -> None:
    if "/" in order.name or order.name in {"", ".", ".."}:
        raise typer.BadParameter(f"{order.name!r} is no name of a BlueGreen, such as demo")

    async def carry_out() -> None:
        async with connected() as cluster:
            ref = ObjectRef(BlueGreen.api, cluster.namespace, order.name)
            live = await targets.read_target(cluster, ref)
            subject = Subject(cluster, ref, live)
            done = await _carried_out(subject, order)
            for line in _lines(order, done):
                echo(line)
            if not order.patience:
                return
            ended = await _ended(subject, done, order)
            if not ended.done:
                raise CommandError(f"{ref}: {ended.words}")
            echo(f"{ref}: {ended.words}")

    interrupts.run(carry_out)


async def _carried_out(subject: Subject, order: _Order) -> _Done:
    """Set the field in exactly the version that was looked at, unless it is set already."""

    async def attempt(number: int) -> _Done:
        live = await _observed(subject, subject.live if number == 1 else await subject.again())
        setting = order.decide(live)
        if setting.is_set(live):
            return _Done(setting, live, live)
        if problem := other_holders.in_the_way(
            live, setting, other_holders.others(live, setting, order.manager)
        ):
            raise CommandError(problem, Exit.CONFLICT)
        body = decision.setting_apply(live, setting, order.manager)
        # Whoever types the command asks for this one field by its name.
        after = live
        with anyio.CancelScope(shield=True):  # what was begun is told of
            answer = await subject.cluster.apply(
                subject.ref.api, body, manager=order.manager, force=True
            )
            after = answer.object
        if not setting.is_set(after):
            raise MoveRefused(
                f"{subject.ref}: the server accepted `{setting.line}` and did not keep it: look at"
                " its mutating admission"
            )
        return _Done(setting, live, after)

    return await until_settled(subject.ref, attempt)


async def _observed(subject: Subject, live: Object) -> Object:
    """Return the object once its status is about its present spec; raises MoveRefused."""
    for number in range(1, ATTEMPTS + 1):
        if decision.is_observed(live):
            return live
        await pause(number)
        live = await subject.again()
    raise MoveRefused(
        f"the operator has not seen the newest change of {subject.ref} yet, so what its status says"
        " is about an older one; see that it runs, and try again"
    )


async def _ended(subject: Subject, done: _Done, order: _Order) -> SwitchEnd:
    """Wait until the switch has ended; tell each new phase. Raises CommandError."""
    last = ""
    live = done.after
    with anyio.move_on_after(order.patience):
        for number in count(1):
            if ended := decision.outcome(live, done.setting):
                return ended
            words = decision.progress(live)
            if words != last and decision.is_observed(live):
                echo(printable(words))
                last = words
            await pause(number)
            live = await subject.again()
    raise CommandError(f"{subject.ref} has not ended its switch in time: {decision.progress(live)}")


def _changes(order: _Order, done: _Done) -> list[Change]:
    """Return all that differs, which may be more than the field if admission has a say."""
    lines = difference(done.before, done.after, order.manager)
    return [Change(line.path, line.old, line.new) for line in lines if line.is_change]


def _lines(order: _Order, done: _Done) -> list[str]:
    """Return what was done, for people."""
    name, setting = f"BlueGreen/{order.name}", done.setting
    if not done.is_new:
        return [f"{name}: {setting.path} is {setting.value} already; nothing was changed"]
    changed = [change_words(change) for change in _changes(order, done)]
    others = other_holders.others(done.before, done.setting, order.manager)
    holders = " and ".join(map(holder_words, others))
    taken = f", taken from {holders}" if holders else ""
    applied = f"{name}: {setting.path} was applied as {order.manager}{taken}"
    later = other_holders.later(done.before, done.setting, order.manager)
    return [*changed, applied, *done.setting.notes, *later]
