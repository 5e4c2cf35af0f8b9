"""Withdraw: `hedgerow release --instance`, everything that an installation holds given up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hedgerow.cli.discovery import group_versions
from hedgerow.cli.exits import Exit
from hedgerow.cli.output import echo, echo_data
from hedgerow.cli.program import installation, program_name, say
from hedgerow.kube.errors import Invalid, Missing
from hedgerow.objects import ObjectRef, metadata
from hedgerow.plan.yield_and_claim import place_of
from hedgerow.process.leadership import AnotherOperatorError, elected_at_work
from hedgerow.runtime.clock import SystemClock
from hedgerow.texts import numbered, printable
from hedgerow_tools.fields.giving_up import (
    co_owning_apply,
    count,
    endpoints,
    is_mark,
    losses,
    nothing,
)
from hedgerow_tools.fields.installations import STATUS, named, reporters
from hedgerow_tools.fields.relabelling import APPLY, HolderName, Takeover, takeover
from hedgerow_tools.moving.bulk import Task
from hedgerow_tools.moving.outcomes import ObjectOutcome, for_each, outcome_of, tried
from hedgerow_tools.moving.report import MoveReport, outcome_line
from hedgerow_tools.objects.writing import applied

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object, Resource
    from hedgerow_tools.fields.transfers import Change

SHOWN: Final = 3
"""The most fields that a line names."""


@dataclass(frozen=True, slots=True)
class Order:
    """The request: whose fields, where, and what happens to those that nobody else holds.

    `to` is a field manager that will hold them; with `drop` they may be lost; without either they
    are kept. `some` controllers of the installation are named, and others may go on.
    """

    instance: str
    controllers: tuple[Controller[Resource], ...]
    namespace: str
    to: str = ""
    drop: bool = False
    yes: bool = False
    some: bool = False


async def withdraw(cluster: Cluster, order: Order) -> AsyncGenerator[list[ObjectOutcome]]:
    """Give up what an installation holds, or without `yes` try it; yield each object's outcomes.

    Raises AnotherOperatorError if all of an installation is meant that is still at work, and
    KubeError.
    """
    base = installation(order.instance).base
    if worker := await elected_at_work(cluster, SystemClock(), base):
        unknown = "its Lease does not tell which controllers it runs: those named must have stopped"
        line = f"{worker}: {unknown if order.some else 'stop it first'}"
        if order.yes and not order.some:
            raise AnotherOperatorError(line)
        say(line)
    async for outcomes in for_each(await _withdrawals(cluster, order), _Withdrawal.carry_out):
        yield outcomes


async def show(order: Order, withdrawn: AsyncIterator[list[ObjectOutcome]], output: str) -> Exit:
    """Print the outcomes of each object, as text at once, and the end; return the exit code."""
    groups: list[list[ObjectOutcome]] = []
    is_early = True
    try:
        async for outcomes in withdrawn:
            groups.append(outcomes)
            for outcome in outcomes if output == "text" else ():
                echo(_line(outcome, yes=order.yes))
        is_early = False
    finally:
        if output == "json":
            objects = [outcome for outcomes in groups for outcome in outcomes]
            echo_data(
                MoveReport("release", not order.yes, not is_early, objects, instance=order.instance)
            )
        else:
            echo(_summary(order, groups))
        if is_early and groups:
            say("it ended early: run the command again to go on")
    # An object whose status has another fate counts for both.
    counts = Counter(fate for outcomes in groups for fate in {outcome.fate for outcome in outcomes})
    if counts["kept"]:
        say(
            f"{counts['kept']} kept, because nobody else holds their values: --to MANAGER hands"
            " them over, --drop removes them"
        )
    if counts["failed"]:
        say(f"{counts['failed']} failed; the rest stays given up: run the command again")
        return Exit.FAILED
    return Exit.CONFLICT if counts["kept"] else Exit.DONE


async def _withdrawals(cluster: Cluster, order: Order) -> list[_Withdrawal]:
    """Return the objects, children first: another operator acts when the resources change."""
    withdrawals: dict[tuple[str, ObjectRef], _Withdrawal] = {}
    for controller in order.controllers:
        manager = installation(order.instance).field_manager(controller.name)

        def reduce(live: Object, manager: str = manager) -> Object:
            meta = metadata(live)
            held = endpoints(live, manager)
            return {"at": (meta.get("namespace", ""), meta["name"])} if held else {}

        for api in (*(kind.api for kind in controller.written_kinds), controller.resource.api):
            if order.namespace and not api.namespaced:
                continue
            try:
                listing = await cluster.list(api, order.namespace, reduce=reduce)
            except Missing:
                continue  # a kind that is not served has no objects
            held = (item["at"] for item in listing.items if item)
            for key in (*held, *(item.key for item in listing.undecoded)):
                ref = ObjectRef(api, *key)
                # Controllers of one name may hold fields of objects of one kind.
                made = _Withdrawal(cluster, order, controller, ref, manager)
                withdrawals.setdefault((manager, ref), made)
    return [*withdrawals.values()]


@dataclass(frozen=True, slots=True)
class _Withdrawal:
    """The withdrawal of a field manager from one object."""

    cluster: Cluster
    order: Order
    controller: Controller[Resource]
    ref: ObjectRef
    manager: str

    async def carry_out(self) -> list[ObjectOutcome]:
        """Give up what is held through each endpoint, while the object exists; return outcomes."""
        places = await tried(self.ref, self._endpoints)
        if isinstance(places, ObjectOutcome):
            return [places]
        made = [await tried(self.ref, partial(self._attempt, place), place) for place in places]
        return [outcome for outcome in made if outcome]

    async def _endpoints(self) -> tuple[str, ...]:
        return endpoints(await self._live() or {}, self.manager)

    async def _live(self) -> Object | None:
        return await self.cluster.read_object(self.ref.api, self.ref.name, self.ref.namespace)

    async def _attempt(self, endpoint: str) -> ObjectOutcome | None:
        """Give up what is held through an endpoint; return None if nothing is left."""
        live = await self._live()
        if live is None or endpoint not in endpoints(live, self.manager):
            return None
        about = {"subresource": endpoint, "fields": count(live, self.manager, endpoint)}
        after = await self._given_up(live, endpoint)
        lost = losses(live, after or {})
        blocking = tuple(change for change in lost if not is_mark(place_of(change.path)))
        other = self._other_reporter(live, endpoint)
        if not blocking or self.order.drop or (other and after is not None):
            if self.order.yes:
                await self._apply(self._rest(live, endpoint), endpoint)
            return outcome_of(self.ref, "given up", changes=lost, **about)
        if to := self.order.to or other:
            return await self._hand_over(live, endpoint, to, about)
        return outcome_of(self.ref, "kept", changes=blocking, **about)

    async def _given_up(self, live: Object, endpoint: str) -> Object | None:
        """Return the object as it would be then, by a dry run; None if the server refuses it."""
        try:
            return await self._apply(self._rest(live, endpoint), endpoint, dry_run=True)
        except Invalid:
            if self.order.drop:
                raise
            return None

    def _rest(self, live: Object, endpoint: str) -> Object:
        """Return the apply of what stays ours: of what is dropped, only what cannot be removed."""
        body = nothing(live)
        if endpoint or not self.order.drop:
            return body
        shared = self.controller.shared.items()
        kept = (name for kind, names in shared if kind.api == self.ref.api for name in names)
        return {
            **{name: live[name] for name in kept if name in live},
            **body,
        }

    async def _hand_over(
        self, live: Object, endpoint: str, to: str, about: dict[str, Any]
    ) -> ObjectOutcome:
        """Make the new manager hold what would be lost, then give the rest up; no value changes."""
        done = outcome_of(self.ref, "handed over", **about)
        places = frozenset(co_owning_apply(live, self.manager, endpoint))
        named = HolderName(self.manager, APPLY, endpoint)
        versions = frozenset(await group_versions(self.cluster))
        change = takeover(
            live,
            Takeover(frozenset({named}), to),
            versions,
            lambda field_path: "moved" if field_path in places else "kept",
        )
        task = Task(self.cluster, dry_run=not self.order.yes)
        now = await task.write(self.ref, live, change) if change else live
        if not self.order.yes:
            return done
        lost = losses(now, await self._apply(nothing(now), endpoint, dry_run=True))
        if altered := tuple(value for value in lost if not is_mark(place_of(value.path))):
            why = "admission changes"
            return outcome_of(self.ref, "kept", changes=altered, why=why, **about)
        await self._apply(nothing(now), endpoint)
        return done

    def _other_reporter(self, live: Object, endpoint: str) -> str:
        """Return the field manager of another installation that also writes a status, or nothing.

        It may hold a condition without its reason, which nobody can give up alone.
        """
        known = reporters(live, self.controller.name, program_name()) if endpoint == STATUS else ()
        others = (writer for writer in known if writer.instance != self.order.instance)
        return next((writer.field_manager(self.controller.name) for writer in others), "")

    async def _apply(self, body: Object, endpoint: str, *, dry_run: bool = False) -> Object:
        return await applied(
            self.cluster, self.ref, body, self.manager, subresource=endpoint, dry_run=dry_run
        )


def _line(outcome: ObjectOutcome, *, yes: bool) -> str:
    fields, would = numbered(outcome.fields, "field"), "" if yes else "would be "
    match outcome.fate:
        case "given up":
            words = f"{fields} {would}given up"
            words += (
                f"; {would}removed with it: {_paths(outcome.changes)}" if outcome.changes else ""
            )
        case "handed over":
            words = f"{fields} {would}handed over, no value changed"
        case _:
            words = f"{fields} kept: {outcome.why or 'nobody else holds'} {_paths(outcome.changes)}"
    return printable(outcome_line(outcome, words))


def _paths(lost: Iterable[Change]) -> str:
    paths = [change.path for change in lost]
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more


def _summary(order: Order, results: Iterable[list[ObjectOutcome]]) -> str:
    who = named(order.instance)
    who = who[:1].upper() + who[1:]
    if not any(results):
        return f"{who} holds nothing there."
    let_go = {"given up", "handed over"}
    count = sum(bool(some) and {outcome.fate for outcome in some} <= let_go for some in results)
    objects = numbered(count, "object")
    if order.yes:
        return f"{who} let go of {objects}."
    return f"{who} would let go of {objects}; nothing was changed. --yes does it."
