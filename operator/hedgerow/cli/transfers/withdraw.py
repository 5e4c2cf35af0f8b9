"""Withdraw: `hedgerow release --all`, everything that an installation holds given up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from hedgerow.cli.exits import Exit
from hedgerow.cli.output import echo, echo_data
from hedgerow.cli.owners.listing import ref_data
from hedgerow.cli.program import installation, program_name, say
from hedgerow.cli.transfers import report
from hedgerow.cli.transfers.giving_up import (
    co_owning_apply,
    count,
    endpoints,
    is_mark,
    losses,
    nothing,
)
from hedgerow.cli.transfers.writing import ITS_OWN, applied, for_each, until_settled
from hedgerow.fields.sets import declaring
from hedgerow.kube.errors import Garbled, Invalid, Missing
from hedgerow.objects import ObjectRef, Salvaged, metadata
from hedgerow.plan.finalizers import finalization
from hedgerow.plan.installations import STATUS, named, reporters
from hedgerow.plan.oversized import WHY_UNREADABLE
from hedgerow.plan.transfers import MoveRefused
from hedgerow.process.leadership import refuse_while_at_work
from hedgerow.texts import numbered, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.plan.transfers import Change
    from hedgerow_schemas.base import Object, Resource

SHOWN: Final = 3
"""The most fields that a line names."""

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
class Result:
    """What happened, or would happen, to one object or its status; `lost` are changed values."""

    ref: ObjectRef
    endpoint: str
    fate: Fate
    fields: int = 0
    lost: tuple[Change, ...] = ()
    why: str = ""
    freed: bool = False
    """The finalizers were removed, but the rest was kept."""

    def __str__(self) -> str:
        """Return the object's title: `BlueGreen shop/demo status`."""
        name = "/".join(filter(None, (self.ref.namespace, self.ref.name)))
        return " ".join(filter(None, (self.ref.api.kind, name, self.endpoint)))


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
    counts = Counter[Fate]()
    """An object whose status has another fate counts for both."""
    let_go = 0
    listed: list[Object] = []

    def tell(results: list[Result]) -> None:
        nonlocal let_go
        fates: set[Fate] = {result.fate for result in results}
        counts.update(fates)
        let_go += bool(fates) and fates <= {"given up", "handed over"}
        for result in results:
            if output == "text":
                echo(_line(result, yes=order.yes))
            else:
                listed.append(_listed(result))

    await for_each(await _found(cluster, order), _Withdrawal.carry_out, tell)
    if output == "json":
        echo_data({"instance": order.instance, "dryRun": not order.yes, "objects": listed})
    else:
        echo(_summary(order, let_go) if counts else f"{_who(order)} holds nothing there.")
    if counts["kept"]:
        say(
            f"{counts['kept']} kept, because nobody else holds their values: --to MANAGER hands"
            " them over, --drop removes them"
        )
    if counts["failed"]:
        say(f"{counts['failed']} failed; the rest stays given up: run the command again")
        return Exit.FAILED
    return Exit.CONFLICT if counts["kept"] else Exit.DONE


async def _found(cluster: Cluster, order: Order) -> list[_Withdrawal]:
    """Return the objects, children first: another operator acts when the resources change."""
    found: dict[tuple[str, ObjectRef], _Withdrawal] = {}
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
            for ref in (ObjectRef(api, *item["at"]) for item in listing.items if item):
                # Controllers of one name may hold fields of objects of one kind.
                made = _Withdrawal(cluster, order, controller, ref, manager)
                found.setdefault((manager, ref), made)
    return [*found.values()]


@dataclass(frozen=True, slots=True)
class _Withdrawal:
    """The withdrawal of a field manager from one object."""

    cluster: Cluster
    order: Order
    controller: Controller[Resource]
    ref: ObjectRef
    manager: str

    async def carry_out(self) -> list[Result]:
        """Give up what is held through each endpoint, while the object exists; return results."""
        try:
            live = await self._read()
        except ITS_OWN as error:
            return [Result(self.ref, "", "failed", why=error.message)]
        found = [await self._given_up(each) for each in endpoints(live or {}, self.manager)]
        return [result for result in found if result]

    async def _given_up(self, endpoint: str) -> Result | None:
        """Try, again if the object changes; return the result, None if nothing is left."""

        async def attempt(_: int) -> Result | None:
            live = await self._read()
            if live is None or endpoint not in endpoints(live, self.manager):
                return None
            return await self._attempt(live, endpoint)

        try:
            return await until_settled("it", attempt)
        except MoveRefused as refusal:
            why = str(refusal)
        except ITS_OWN as error:
            why = error.message
        return Result(self.ref, endpoint, "failed", why=why)

    async def _attempt(self, live: Object, endpoint: str) -> Result:
        fields = count(live, self.manager, endpoint)
        lost = await self._lost(live, endpoint)
        blocking = tuple(change for change in lost if not is_mark(change.field_path))
        if not blocking or self.order.drop or self._is_reported_elsewhere(live, endpoint):
            if self.order.yes:
                await self._apply(self._rest(live, endpoint), endpoint)
            return Result(self.ref, endpoint, "given up", fields, lost)
        if self.order.to:
            return await self._hand_over(live, endpoint, fields)
        freed = await self._free(live) if not endpoint else False
        return Result(self.ref, endpoint, "kept", fields, blocking, freed=freed)

    async def _lost(self, live: Object, endpoint: str) -> tuple[Change, ...]:
        """Return what would change, by a dry run; if the server refuses it, everything is lost."""
        try:
            after = await self._apply(self._rest(live, endpoint), endpoint, dry_run=True)
        except Invalid:
            if self.order.drop:
                raise
            after = {}
        return losses(live, after)

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

    async def _hand_over(self, live: Object, endpoint: str, fields: int) -> Result:
        """Make the new manager hold what would be lost, then give it up; no value changes."""
        done = Result(self.ref, endpoint, "handed over", fields)
        places = co_owning_apply(live, self.manager, endpoint)
        body = declaring(live, self.order.to, places, endpoint)
        now = await self._apply(body, endpoint, manager=self.order.to, dry_run=not self.order.yes)
        if not self.order.yes:
            return done
        changed = losses(live, now)
        if all(is_mark(change.field_path) for change in changed):
            changed = losses(now, await self._apply(nothing(now), endpoint, dry_run=True))
        if told := tuple(change for change in changed if not is_mark(change.field_path)):
            return Result(self.ref, endpoint, "kept", fields, told, why="admission changes")
        await self._apply(nothing(now), endpoint)
        return done

    async def _free(self, live: Object) -> bool:
        """Remove our finalizers; otherwise nobody would, and the object could never be deleted."""
        given_up = self.controller.child_finalizers | {self.controller.built_in.hold_finalizer}
        write = finalization(self.ref.api, live, self.manager, given_up)
        if write is None:
            return False
        if self.order.yes:
            await self._apply(write.body, "")
        return True

    def _is_reported_elsewhere(self, live: Object, endpoint: str) -> bool:
        """Return whether it is a status that another installation also writes."""
        found = reporters(live, self.controller.name, program_name())
        return endpoint == STATUS and any(one.instance != self.order.instance for one in found)

    async def _read(self) -> Object | None:
        """Return the object, None if there is none; raises Garbled if it is not read exactly."""
        live = await self.cluster.read(self.ref.api, self.ref.name, self.ref.namespace)
        if isinstance(live, Salvaged):
            raise Garbled(f"it {WHY_UNREADABLE}")
        return live

    async def _apply(
        self, body: Object, endpoint: str, *, manager: str = "", dry_run: bool = False
    ) -> Object:
        return await applied(
            self.cluster,
            self.ref,
            body,
            manager or self.manager,
            subresource=endpoint,
            dry_run=dry_run,
        )


def _line(result: Result, *, yes: bool) -> str:
    fields = numbered(result.fields, "field")
    match result.fate:
        case "given up":
            would = "" if yes else "would be "
            told = f"{fields} {would}given up"
            told += f"; {would}removed with it: {_paths(result.lost)}" if result.lost else ""
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
    return {
        **ref_data(result.ref),
        **({"subresource": result.endpoint} if result.endpoint else {}),
        "fate": result.fate,
        "fields": result.fields,
        "changes": [report.change_data(change) for change in result.lost],
        **({"why": result.why} if result.why else {}),
    }


def _who(order: Order) -> str:
    who = named(order.instance)
    return who[:1].upper() + who[1:]


def _summary(order: Order, let_go: int) -> str:
    objects = numbered(let_go, "object")
    if order.yes:
        return f"{_who(order)} let go of {objects}."
    return f"{_who(order)} would let go of {objects}; nothing was changed. --yes does it."
