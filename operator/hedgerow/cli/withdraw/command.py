"""Withdraw: `hedgerow release --all`, everything that an installation holds given up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import anyio

from hedgerow.cli.exits import Exit
from hedgerow.cli.output import echo, echo_lines
from hedgerow.cli.program import installation, program_name, say
from hedgerow.cli.withdraw.plan import (
    co_owning_apply,
    count,
    endpoints,
    is_mark,
    losses,
    nothing,
)
from hedgerow.encoding import to_json
from hedgerow.fields.sets import ABSENT, declaring
from hedgerow.kube.errors import (
    Conflict,
    Forbidden,
    Garbled,
    Invalid,
    Missing,
    Stale,
    Unavailable,
)
from hedgerow.kube.retry import RetryClock, backoff
from hedgerow.kube.withholding import withholding
from hedgerow.objects import Salvaged, metadata
from hedgerow.plan.finalizers import finalization
from hedgerow.plan.installations import STATUS, named, reporters
from hedgerow.plan.oversized import WHY_UNREADABLE
from hedgerow.process.leadership import refuse_while_at_work
from hedgerow.texts import printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.plan.transfers import Change
    from hedgerow_schemas.base import ApiResource, Object, Resource

ATTEMPTS: Final = 5
"""The most attempts if an object has just changed."""
AT_ONCE: Final = 8
BATCH: Final = 64
"""The number of objects whose results are reported together, in order."""
SHOWN: Final = 3
"""The most fields that a line names."""

ITS_OWN = (Conflict, Forbidden, Garbled, Invalid, Unavailable)
"""What may be wrong with one object while all others are served."""

Fate = Literal["given up", "handed over", "kept", "failed"]


@dataclass(frozen=True, slots=True)
class Order:
    """The request: whose fields, where, and what happens to those that nobody else holds.

    `to` is a field manager that will hold them; with `drop` they may be lost; without either they
    are kept.
    """

    instance: str
    controllers: tuple[Controller[Resource], ...]
    namespace: str
    system_namespace: str
    to: str = ""
    drop: bool = False
    yes: bool = False


@dataclass(frozen=True, slots=True)
class _Target:
    """One object that a controller's field manager holds a part of."""

    controller: Controller[Resource]
    api: ApiResource
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Result:
    """What happened, or would happen, to one object or its status; `lost` are changed values."""

    target: _Target
    endpoint: str
    fate: Fate
    fields: int
    lost: tuple[Change, ...] = ()
    why: str = ""
    freed: bool = False
    """The finalizers were removed, but the rest was kept."""

    def __str__(self) -> str:
        """Return the object's title: `BlueGreen shop/demo status`."""
        place = "/".join(filter(None, (self.target.namespace, self.target.name)))
        return " ".join(filter(None, (self.target.api.kind, place, self.endpoint)))


async def withdraw(cluster: Cluster, order: Order, output: str) -> Exit:
    """Print what an installation holds, or with `yes` give it up; return the exit code.

    Raises AnotherOperatorError if the installation is still at work, and KubeError.
    """
    await refuse_while_at_work(
        cluster,
        installation=installation(order.instance),
        namespaces=(order.namespace,) if order.namespace else (),
        system_namespace=order.system_namespace,
    )
    tally = _Tally()
    async for results in _results(cluster, order):
        tally.take(results)
        for result in results:
            if output == "text":
                echo(_line(result, yes=order.yes))
            else:
                tally.listed.append(_listed(result))
    _tell(tally, order, output)
    return tally.exit


@dataclass(slots=True)
class _Tally:
    """How many objects had which fate; one with a status of another fate counts for both."""

    counts: dict[Fate, int] = field(default_factory=dict[Fate, int])
    let_go: int = 0
    """The objects of which nothing is held any more, or would be."""
    listed: list[Object] = field(default_factory=list["Object"])

    def take(self, results: Sequence[Result]) -> None:
        """Count the results of one object: one for each subresource, the status apart."""
        fates: set[Fate] = {result.fate for result in results}
        for fate in fates:
            self.counts[fate] = self.counts.get(fate, 0) + 1
        self.let_go += bool(fates) and fates <= {"given up", "handed over"}

    def of(self, fate: Fate) -> int:
        return self.counts.get(fate, 0)

    @property
    def exit(self) -> Exit:
        if self.of("failed"):
            return Exit.FAILED
        return Exit.CONFLICT if self.of("kept") else Exit.DONE


async def _results(cluster: Cluster, order: Order) -> AsyncGenerator[list[Result]]:
    """Yield the results of each object; at most AT_ONCE are handled at the same time."""
    found = await _found(cluster, order)
    for start in range(0, len(found), BATCH):
        batch = found[start : start + BATCH]
        results: list[list[Result]] = [[] for _ in batch]
        limit = anyio.CapacityLimiter(AT_ONCE)

        async def work(number: int, target: _Target) -> None:
            async with limit:  # noqa: B023 - each batch ends before the next one begins
                results[number] = await _Withdrawal(cluster, order, target).carry_out()  # noqa: B023

        async with anyio.create_task_group() as tasks:
            for number, target in enumerate(batch):
                tasks.start_soon(work, number, target)
        for some in results:
            yield some


async def _found(cluster: Cluster, order: Order) -> list[_Target]:
    """Return the objects, children first: another operator acts when the resources change."""
    found: dict[tuple[str, ApiResource, str, str], _Target] = {}
    for controller in order.controllers:
        manager = installation(order.instance).field_manager(controller.name)

        def reduce(live: Object, manager: str = manager) -> Object:
            meta = metadata(live)
            held = endpoints(live, manager)
            return {"at": (meta.get("namespace", ""), meta["name"])} if held else {}

        for api in (*(kind.api for kind in controller.written), controller.resource.api):
            try:
                listing = await cluster.list(api, order.namespace, reduce=reduce)
            except Missing:
                continue  # a kind that is not served has no objects
            for at in (item["at"] for item in listing.items if item):
                # Controllers of one name may hold fields of objects of one kind.
                found.setdefault((manager, api, *at), _Target(controller, api, *at))
    return [*found.values()]


class _Withdrawal:
    """The withdrawal from one object."""

    def __init__(self, cluster: Cluster, order: Order, target: _Target) -> None:
        self._cluster, self._order, self._target = cluster, order, target
        self._manager = installation(order.instance).field_manager(target.controller.name)

    async def carry_out(self) -> list[Result]:
        """Give up what is held through each endpoint, while the object exists; return results."""
        results: list[Result] = []
        try:
            live = await self._read()
        except ITS_OWN as error:
            return [Result(self._target, "", "failed", 0, why=error.message)]
        for endpoint in endpoints(live or {}, self._manager):
            result = await self._anew(endpoint)
            results += [result] if result else []
        return results

    async def _anew(self, endpoint: str) -> Result | None:
        """Try, again if the object changes; return the result, None if nothing is left."""
        timing = RetryClock()
        why = "it changes all the time; try again"
        for attempt in range(1, ATTEMPTS + 1):
            try:
                live = await self._read()
                if live is None or endpoint not in endpoints(live, self._manager):
                    return None
                return await self._attempt(live, endpoint)
            except Stale:
                await timing.sleep(backoff(attempt, timing.draw()))
            except ITS_OWN as error:
                why = error.message
                break
        return Result(self._target, endpoint, "failed", 0, why=why)

    async def _attempt(self, live: Object, endpoint: str) -> Result:
        fields = count(live, self._manager, endpoint)
        lost = await self._lost(live, endpoint)
        blocking = {field_path for field_path in lost if not is_mark(field_path)}
        free = not blocking or self._order.drop or self._is_reported_elsewhere(live, endpoint)
        if free:
            if self._order.yes:
                await self._apply(self._rest(live, endpoint), endpoint)
            return Result(self._target, endpoint, "given up", fields, tuple(lost.values()))
        if self._order.to:
            return await self._hand_over(live, endpoint, fields)
        freed = await self._free(live) if not endpoint else False
        told = tuple(lost[field_path] for field_path in lost if field_path in blocking)
        return Result(self._target, endpoint, "kept", fields, told, freed=freed)

    async def _lost(self, live: Object, endpoint: str) -> dict[tuple[str, ...], Change]:
        """Return what would change, by a dry run; if the server refuses it, everything is lost."""
        try:
            after = await self._apply(self._rest(live, endpoint), endpoint, dry_run=True)
        except Invalid:
            if self._order.drop:
                raise
            return losses(live, {})
        return losses(live, after)

    def _rest(self, live: Object, endpoint: str) -> Object:
        """Return the apply of what stays ours: of what is dropped, only what cannot be removed."""
        body = nothing(live)
        if endpoint or not self._order.drop:
            return body
        shared = self._target.controller.shared.items()
        kept = (name for kind, names in shared if kind.api == self._target.api for name in names)
        return {
            **{name: live[name] for name in kept if name in live},
            **body,
        }

    async def _hand_over(self, live: Object, endpoint: str, fields: int) -> Result:
        """Make the new manager hold what would be lost, then give it up; no value changes."""
        done = Result(self._target, endpoint, "handed over", fields)
        body = declaring(
            live, self._order.to, co_owning_apply(live, self._manager, endpoint), endpoint
        )
        now = await self._apply(body, endpoint, manager=self._order.to, dry_run=not self._order.yes)
        if not self._order.yes:
            return done
        changed = {
            field_path: c for field_path, c in losses(live, now).items() if not is_mark(field_path)
        }
        if not changed:
            after = await self._apply(nothing(now), endpoint, dry_run=True)
            changed = {
                field_path: c
                for field_path, c in losses(now, after).items()
                if not is_mark(field_path)
            }
        if changed:
            told = tuple(changed.values())
            return Result(self._target, endpoint, "kept", fields, told, why="admission changes")
        await self._apply(nothing(now), endpoint)
        return done

    async def _free(self, live: Object) -> bool:
        """Remove our finalizers; otherwise nobody would, and the object could never be deleted."""
        controller = self._target.controller
        given_up = controller.child_finalizers | {controller.built_in.hold_finalizer}
        write = finalization(self._target.api, live, self._manager, given_up)
        if write is None:
            return False
        if self._order.yes:
            await self._apply(write.body, "")
        return True

    def _is_reported_elsewhere(self, live: Object, endpoint: str) -> bool:
        """Return whether it is a status that another installation also writes."""
        found = reporters(live, self._target.controller.name, program_name())
        return endpoint == STATUS and any(one.instance != self._order.instance for one in found)

    async def _read(self) -> Object | None:
        """Return the object, None if there is none; raises Garbled if it is not read exactly."""
        target = self._target
        live = await self._cluster.read(target.api, target.name, target.namespace)
        if isinstance(live, Salvaged):
            raise Garbled(f"it {WHY_UNREADABLE}")
        return live

    async def _apply(
        self, body: Object, endpoint: str, *, manager: str = "", dry_run: bool = False
    ) -> Object:
        with withholding(self._target.api):
            answer = await self._cluster.apply(
                self._target.api,
                body,
                manager=manager or self._manager,
                subresource=endpoint,
                dry_run=dry_run,
            )
        return answer.object


def _line(result: Result, *, yes: bool) -> str:
    fields = "1 field" if result.fields == 1 else f"{result.fields} fields"
    match result.fate:
        case "given up":
            told = f"{fields} {'given up' if yes else 'would be given up'}"
            told += f"; removed with it: {_paths(result.lost)}" if result.lost and yes else ""
            told += (
                f"; would be removed with it: {_paths(result.lost)}"
                if result.lost and not yes
                else ""
            )
        case "handed over":
            told = f"{fields} {'handed over' if yes else 'would be handed over'}, no value changed"
        case "kept":
            told = f"{fields} kept: {result.why or 'nobody else holds'} {_paths(result.lost)}"
            told += "; the finalizer is removed" if result.freed else ""
        case _:
            told = f"failed: {result.why}"
    return printable(f"{result}: {told}")


def _paths(lost: Iterable[Change]) -> str:
    paths = [change.path for change in lost]
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more


def _listed(result: Result) -> Object:
    target = result.target
    return {
        "apiVersion": target.api.group_version,
        "kind": target.api.kind,
        **({"namespace": target.namespace} if target.namespace else {}),
        "name": target.name,
        **({"subresource": result.endpoint} if result.endpoint else {}),
        "fate": result.fate,
        "fields": result.fields,
        "changes": [_change(change) for change in result.lost],
        **({"why": result.why} if result.why else {}),
    }


def _change(change: Change) -> Object:
    values = {"before": change.before, "after": change.after}
    return {"path": change.path} | {k: v for k, v in values.items() if v is not ABSENT}


def _tell(tally: _Tally, order: Order, output: str) -> None:
    if output == "json":
        whole = {"instance": order.instance, "dryRun": not order.yes, "objects": tally.listed}
        echo_lines(to_json(whole, indent=2).decode())
    else:
        echo(_summary(tally, order))
    if tally.of("kept"):
        say(
            f"{tally.of('kept')} kept, because nobody else holds their values: --to MANAGER hands"
            " them over, --drop removes them"
        )
    if tally.of("failed"):
        say(f"{tally.of('failed')} failed; the rest stays given up: run the command again")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _summary(tally: _Tally, order: Order) -> str:
    who = _capital(named(order.instance))
    done = tally.let_go
    if not tally.counts:
        return f"{who} holds nothing there."
    objects = f"{done} object{'' if done == 1 else 's'}"
    if order.yes:
        return f"{who} let go of {objects}."
    return f"{who} would let go of {objects}; nothing was changed. --yes does it."
