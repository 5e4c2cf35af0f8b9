"""Plan: all writes and conflicts of one resource and its children.

There is no write for a child that is settled or is being deleted, or whose name somebody else uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from hedgerow.contract import Apply, Copy, Create, Desired, Keep
from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import extract
from hedgerow.fields.ownership import (
    items_of_unknown_owner,
    respelled,
    with_held_items,
    without_yielded,
)
from hedgerow.fields.redaction import shown
from hedgerow.fields.refused import as_held
from hedgerow.objects import (
    PLACEHOLDER,
    ChildId,
    controller_of,
    is_of,
    is_terminating,
    metadata,
)
from hedgerow.plan.conditions import TAKEN, Problem
from hedgerow.plan.conflict_messages import DECLARED_NO_MORE, UNKNOWN_OWNER
from hedgerow.plan.declaration import declared_part
from hedgerow.plan.input import is_scaled_to_zero
from hedgerow.plan.ledger import NO_ENTRY, RECHECK_NAME, WITHOUT, EntryState, LedgerEntry
from hedgerow.plan.remedies import owned_again, without_effect
from hedgerow.plan.status_annotation import STATUS_ANNOTATION, held
from hedgerow.plan.writes import (
    Deletion,
    Write,
    checksum,
    contributed,
    declare,
    disowned,
    give_back,
    judge_admitted,
    others_hold_a_part,
)
from hedgerow.plan.yield_and_claim import CLAIM, YIELD, unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from hedgerow.contract import Child, ContributesTo, Contribution, Fields
    from hedgerow.fields.ownership import Leaf, Verdict
    from hedgerow.fields.sets import FieldPath
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.input import PlanInput
    from hedgerow_schemas.base import ApiResource, ContestedField, Object, View


NOT_OURS = "NotOurs"
_STILL_CHILD = (
    "the object is no longer declared, but other field managers hold all its fields, with"
    " hedgerow's owner reference: somebody replaced its managed fields. Delete the object, or"
    " remove the owner reference"
)
NAME_TAKEN: Final = "NameTaken"
"""The reason of a condition: an object that is not ours has the name of a child."""
RESTORE_ONCE_IN = timedelta(minutes=10)
WAITING: Final = "WaitingForDeletion"
"""The reason of a condition: another object still has the child's name and is being deleted."""

IMMUTABLE: Final = "Immutable"
"""The reason of a condition: a child cannot be changed, nor made anew while others have a part."""

INVALID_CONTRIBUTION: Final = "InvalidContribution"
"""The reason of a condition: compose returned one that the controller may not make."""

ContributableFields = Mapping["ApiResource", "Fields"]
"""The fields that a controller may contribute, by kind; see `Controller.contributed`."""

ContestedLeaves = tuple[tuple["ContestedField", "Leaf"], ...]
"""The contested fields as they are reported, each with its leaf."""


class Plan(Struct, frozen=True):
    """All writes that are needed now, and the conflicts, problems and verdicts of planning.

    `rewritten` has a line for each declared field that mutating admission changed, `unmatched` for
    each policy entry that matches no existing field, and `ignored` for each policy entry that has
    no effect on a contested field, with the reason. `judged` has the new
    ledger entry of each target that was planned.
    """

    writes: tuple[Write, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    contested: tuple[ContestedField, ...] = ()
    problems: tuple[Problem, ...] = ()
    rewritten: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    judged: Mapping[ChildId, LedgerEntry] = field(default_factory=dict[ChildId, LedgerEntry])

    @property
    def requests(self) -> tuple[Write | Deletion, ...]:
        """All writes and deletions, in the order in which they are carried out."""
        return (*self.writes, *self.deletions)


class ChildPlanner:
    """The plan of one declared child."""

    def __init__(self, plan_input: PlanInput, child: Apply | Create) -> None:
        self._prepare(plan_input, child.kind.api, child.name, child.fields)
        self._child = child
        if isinstance(child, Create):
            self.once = True
        else:
            self.after = frozenset([kind.api.kind for kind in child.after])
            self.anew = isinstance(child, Copy) and child.anew

    def _prepare(
        self, plan_input: PlanInput, api: ApiResource, name: str, fields: Mapping[str, Any]
    ) -> None:
        self.plan_input = plan_input
        self._waits = ""
        self.once = False
        self.after: frozenset[str] = frozenset()
        self.anew = False
        self.id = ChildId(api.kind, name)
        self.entry = plan_input.entries.get(self.id, NO_ENTRY)
        self.content = plan_input.content(self.id)
        self.admitted = self.entry.admitted or plan_input.admitted.get(self.id, "")
        self.ref = plan_input.ref(api, name)
        self.fields = fields

    @cached_property
    def want(self) -> Object:
        """The declared manifest; it is not made for a settled child."""
        return self._manifest(self.plan_input.live.get(self.id, {}))

    def _manifest(self, live: Mapping[str, Any]) -> Object:
        installation, resource = self.plan_input.installation, self.plan_input.resource
        label = installation.label(self.plan_input.controller)
        return declare(self._child, resource, label, live, key=installation.label_key)

    def decide(self) -> Plan:
        """Return at most one write, the contested fields, and the problems."""
        live = self.plan_input.live.get(self.id)
        if live is None:
            return self._missing()
        if self.once:
            return Plan(judged={self.id: NO_ENTRY})
        if is_terminating(live):
            return self._waiting()
        if self.anew:
            return self._made_anew(live)
        if self.entry.is_settled(self._declared, self.content):
            contested = self._reported(self.entry.contested)
            return self._settled(contested, self.entry)
        return self._present(live)

    def _missing(self) -> Plan:
        name_conflict = self.plan_input.namesake(self.id)
        if name_conflict is not None:
            former = controller_of(name_conflict)
            resource = self.plan_input.resource
            same = is_of(former, resource.api) and former.get("name") == resource.name
            # An earlier resource of this name left it; garbage collection will delete it.
            return self._waiting() if same or is_terminating(name_conflict) else self._foreign()
        if self.entry.state is EntryState.TAKEN:
            return self._foreign()
        body = {**self.want, "metadata": {**self.want["metadata"], "resourceVersion": "1"}}
        write = Write(self.ref, body, create=True, once=self.once, declared=self._declared)
        return self._write(write, ())

    def _present(self, live: Object) -> Plan:
        manager, declared = self.plan_input.field_manager, self.want
        if self.plan_input.field_policy.yields:
            declared = without_yielded(declared, live, manager, self._is_yielded)
        verdict = self._judge(declared, live)
        spelled = respelled(declared, verdict)
        if spelled is not declared:
            declared, verdict = spelled, self._judge(spelled, live)
        declared, shared = with_held_items(declared, live, manager, verdict)
        if shared:
            verdict = self._judge(declared, live)
        doubtful = self._unproven(declared, live)
        vanished = self._vanished(verdict)
        restores, abandoned = _parted(vanished, self._is_abandoned)
        contested, claims = _parted(verdict.contested, self._is_claimed)
        left_out = (*contested, *abandoned)
        want = ownership.leave_out(declared, left_out) if left_out else declared
        contested_leaves = (
            *self._reported(left_out),
            *self._reported(shared, DECLARED_NO_MORE),
            *self._reported(doubtful, UNKNOWN_OWNER),
        )
        allowed = self._judge(want, live) if left_out else verdict
        if allowed.settled:
            content = "" if abandoned or shared or doubtful else self.content
            admitted = self.admitted if allowed.is_admitted else ""
            entry = self.entry.judged(
                self._declared, content, verdict.contested, verdict.rewritten, admitted
            )
            return self._settled(contested_leaves, entry)
        # We give up a contested field that we hold too. The write is for this exact version, so
        # that its other holder still holds it: otherwise the server would remove the field.
        gives_up = any(leaf.why == "surplus" for leaf in verdict.leaves) or any(
            leaf.why == "changed" for leaf in left_out
        )
        write = self._change(want, live, restores, claims, exactly=gives_up or bool(claims))
        write = replace(write, left_out=tuple(leaf.path for leaf in left_out))
        rest = None if claims else self._rest(write, want, live)
        return self._write(write, contested_leaves, rest)

    def _rest(self, write: Write, want: Object, live: Object) -> Write | None:
        """Return the write without the refused fields, while the whole write has to wait; or None.

        The refused fields stay as they are, and the other fields do not wait for them.
        """
        plan_input, target = self.plan_input, self._rest_target
        if target is None or not self.entry.waits(write, plan_input.now):
            return None
        intent, manager = checksum(write.intent_digest, target.name), plan_input.field_manager
        known = plan_input.entries.get(target, NO_ENTRY)
        if known.is_settled(intent, self.content):
            return None
        rest = as_held(want, live, manager, self.entry.blocked)
        if judge_admitted(rest, live, manager, known.admitted).settled:
            return None
        change = self._change(rest, live, (), (), exactly=True)
        return replace(change, declared=intent, is_complete=True, target=target)

    @cached_property
    def _rest_target(self) -> ChildId | None:
        """The ledger's target for this child without its refused fields; None if none are."""
        if not self.entry.blocked:
            return None
        places = ", ".join(".".join(place) for place in self.entry.blocked)
        return ChildId(self.id.kind, f"{self.id.name}{WITHOUT}{places}")

    def _judge(self, want: Object, live: Object) -> Verdict:
        return judge_admitted(want, live, self.plan_input.field_manager, self.admitted)

    def _unproven(self, declared: Object, live: Object) -> tuple[Leaf, ...]:
        return tuple(
            leaf
            for leaf in items_of_unknown_owner(declared, live)
            if not self._is_yielded(leaf.field_path)
        )

    def _change(
        self,
        want: Object,
        live: Object,
        restores: tuple[Leaf, ...],
        claims: tuple[Leaf, ...],
        *,
        exactly: bool,
    ) -> Write:
        """Return the write of `want` to the object with this uid; `exactly`: only to this version.

        Force takes fields from any holder, and giving up an item removes all that is in it. Such
        writes need the exact version, so that nothing was added there in the meantime.
        """
        meta = metadata(live)
        ref = replace(self.ref, uid=meta["uid"])
        guard = {
            "uid": ref.uid,
            **({"resourceVersion": meta["resourceVersion"]} if exactly else {}),
        }
        body = {**want, "metadata": {**want["metadata"], **guard}}
        return Write(
            ref,
            body,
            create=False,
            content=self.content,
            restores=restores,
            claims=claims,
            declared=self._declared,
            is_complete=want is self.want,
        )

    def _write(self, write: Write, contested: ContestedLeaves, rest: Write | None = None) -> Plan:
        writes = (write,) if rest is None else (write, rest)
        if self.after:
            writes = tuple(replace(step, after=self.after) for step in writes)
        entries, targets = self.plan_input.entries, [step.id for step in writes]
        if self._rest_target is not None:
            targets.append(self._rest_target)  # while the whole is tried again as well
        return Plan(
            writes=writes,
            contested=tuple(field for field, _ in contested),
            ignored=tuple(self._ignored(contested)),
            judged={target: entries.get(target, NO_ENTRY) for target in targets},
        )

    @cached_property
    def _declared(self) -> str:
        """A digest of the declaration; the rest of the manifest depends on the live object."""
        # Judge again once a contribution waits no longer, although nothing else has changed.
        return checksum(self.fields, self._waits)

    def _settled(self, contested: ContestedLeaves, entry: LedgerEntry) -> Plan:
        return Plan(
            contested=tuple(field for field, _ in contested),
            ignored=tuple(self._ignored(contested)),
            rewritten=tuple(self._rewritten(leaf) for leaf in entry.rewritten),
            judged={self.id: entry},
        )

    def _rewritten(self, leaf: Leaf) -> str:
        live, want = (
            shown(self.ref.api.kind, leaf.field_path, value) for value in (leaf.live, leaf.want)
        )
        return f"{self.ref}: {leaf.path} was changed to {live}, declared {want}"

    def _waiting(self) -> Plan:
        message = f"{self.ref} is being deleted; it is created again once it is gone"
        return Plan(problems=(Problem(WAITING, message, stalled=False, about=self.id),))

    def _foreign(self) -> Plan:
        message = (
            f"{self.ref} {TAKEN} {self.plan_input.resource}; it is left alone: delete or rename one"
            " of the two"
        )
        entry = self.entry
        if entry.state is not EntryState.TAKEN:
            entry = LedgerEntry(EntryState.TAKEN, again=self.plan_input.now + RECHECK_NAME)
        return Plan(
            problems=(Problem(NAME_TAKEN, message, about=self.id),), judged={self.id: entry}
        )

    def _made_anew(self, live: Object) -> Plan:
        """Return the deletion of a child that cannot be changed; once it is gone, it is missing.

        It is made only if the server would create the new one, see `Deletion.replacement`.
        """
        meta = metadata(live)
        if others_hold_a_part(live, self.plan_input.field_manager):
            message = (
                f"{self.ref} cannot be changed, and is not created again while others hold fields"
                f" of it"
            )
            return Plan(problems=(Problem(IMMUTABLE, message, about=self.id),))
        ref = replace(self.ref, uid=meta["uid"])
        deletion = Deletion(
            ref, meta.get("resourceVersion", ""), self._declared, replacement=self._manifest({})
        )
        return Plan(deletions=(deletion,))

    def _reported(self, leaves: Iterable[Leaf], reason: str = "") -> ContestedLeaves:
        return tuple((self.plan_input.report(self.ref, leaf, reason), leaf) for leaf in leaves)

    def _ignored(self, contested: ContestedLeaves) -> Iterator[str]:
        """Yield a line for each yielded or claimed field that is contested nevertheless."""
        places = {leaf.field_path: (field, leaf) for field, leaf in reversed(contested)}
        for word in (YIELD, CLAIM):
            for entry, at in self.plan_input.field_policy.first(word, *self.id, places):
                field, leaf = places[at]
                why = self._waits if word == CLAIM else ""
                why = why or without_effect(word, field.reason or "", leaf.field_path)
                yield f"{word}: {entry.text} has no effect on {self.ref} {leaf.path}: {why}"

    def _vanished(self, verdict: Verdict) -> tuple[Leaf, ...]:
        """Return the leaves that we held before and that nobody holds now."""
        known = self.entry.settled == self._declared
        return tuple(
            leaf
            for leaf in verdict.leaves
            if leaf.why == "lost" and not leaf.holders and not leaf.equal
            if known
            or self._is_reported(leaf)
            or (self._may_have_been_left(leaf) and not self._may_be_new)
        )

    @property
    def _may_be_new(self) -> bool:
        """Whether the declaration may be new: then it is applied as it is.

        After a restart there is no entry: only what the status is about tells.
        """
        return self.plan_input.spec_changed or bool(self.entry.settled)

    def _is_abandoned(self, leaf: Leaf) -> bool:
        """Return whether to leave a vanished leaf alone: restored lately, reported, or scaled to 0.

        A claimed leaf is never left alone.
        """
        restored = self.entry.restored.get(leaf.path)
        recently = restored is not None and abs(self.plan_input.now - restored) < RESTORE_ONCE_IN
        given_up = recently or self._is_reported(leaf) or self._may_have_been_left(leaf)
        return given_up and not self._is_claimed(leaf)

    def _may_have_been_left(self, leaf: Leaf) -> bool:
        """Return whether a leaf was scaled to 0, or may be one that the status has no room for."""
        return is_scaled_to_zero(leaf) or self.plan_input.may_be_given_up

    def _is_yielded(self, field_path: FieldPath) -> bool:
        return self.plan_input.field_policy.yielded(*self.id, field_path)

    def _is_claimed(self, leaf: Leaf) -> bool:
        is_claimed = self.plan_input.field_policy.claimed(*self.id, leaf.field_path)
        return is_claimed and not self._waits

    def _is_reported(self, leaf: Leaf) -> bool:
        return self.plan_input.is_given_up(self.ref, leaf.path)


class ContributionPlanner(ChildPlanner):
    """The plan of the fields that are held on an object that is not owned."""

    def __init__(
        self, plan_input: PlanInput, api: ApiResource, name: str, fields: Object, waits: str = ""
    ) -> None:
        """Plan a contribution; `waits`: why nothing is taken by force now, even if claimed."""
        self._prepare(plan_input, api, name, fields)
        self._waits = waits

    @cached_property
    def want(self) -> Object:
        """The manifest that is applied: the identity and these fields."""
        return contributed(self.ref, {**self.fields})

    def _missing(self) -> Plan:
        return Plan()

    def _waiting(self) -> Plan:
        return Plan()

    def _write(self, write: Write, contested: ContestedLeaves, rest: Write | None = None) -> Plan:
        return super()._write(replace(write, foreign=True), contested, rest)

    @property
    def _may_be_new(self) -> bool:
        # Another number for an object that is not ours does not undo that somebody scaled it to 0.
        return self.plan_input.spec_changed


def _parted(
    leaves: Iterable[Leaf], test: Callable[[Leaf], bool]
) -> tuple[tuple[Leaf, ...], tuple[Leaf, ...]]:
    """Return the leaves that fail a test, and those that pass it."""
    tested = [(leaf, test(leaf)) for leaf in leaves]
    failed = tuple(leaf for leaf, passed in tested if not passed)
    return failed, tuple(leaf for leaf, passed in tested if passed)


def plan_resource(
    plan_input: PlanInput,
    desired: Desired,
    owns: Iterable[type[View]],
    contributable: ContributableFields | None = None,
    shared: Mapping[type[View], tuple[str, ...]] | None = None,
) -> Generator[None, None, Plan]:
    """Return the plan that makes the live children match the desired ones.

    It yields after each child, so that other work can run in between.

    Owned objects that `desired` does not name are pruned. Objects of the kinds of `contributable`
    are never created nor deleted; what we hold of those that `desired` does not name is given
    back. An owned object of a kind in `shared` is given up instead of pruned while others hold a
    part of it.
    The writes are in the order of `desired.children`; those for contributions follow. Which of them
    wait for others, `writes.next_steps` tells.
    """
    by_kind = {kind.api.kind: kept for kind, kept in (shared or {}).items()}
    parts: list[Plan] = []
    for child in desired.children:
        parts.append(_planned(plan_input, child))
        yield
    parts = _with_way_back(plan_input, desired.children, parts)
    contributable, own = contributable or {}, plan_input.resource.api
    contributed_kinds = {api.kind: api for api in contributable if api != own}
    contributions, problems = contributions_of(plan_input, desired, contributable)
    for part in _contributed(plan_input, contributions, contributed_kinds):
        parts.append(part)
        yield
    named = {ChildId(child.kind.api.kind, child.name) for child in desired.children}
    kinds = {kind.api.kind: kind for kind in owns}
    policy_kinds = kinds.keys() | contributed_kinds.keys()
    declared = named | contributions.keys()
    missed = yield from unmatched(plan_input.field_policy, plan_input.live, declared, policy_kinds)
    surplus, left = _surplus(plan_input, named, kinds, by_kind)
    problems += left
    let_go = (step for step in surplus if isinstance(step, Write))
    deletions = (step for step in surplus if isinstance(step, Deletion))
    return Plan(
        writes=(*(write for part in parts for write in part.writes), *let_go),
        deletions=(*(deletion for part in parts for deletion in part.deletions), *deletions),
        contested=tuple(leaf for part in parts for leaf in part.contested),
        problems=(*(problem for part in parts for problem in part.problems), *problems),
        rewritten=tuple(line for part in parts for line in part.rewritten),
        unmatched=missed,
        ignored=(
            *(line for part in parts for line in part.ignored),
            *plan_input.field_policy.unknown,
        ),
        judged={target: entry for part in parts for target, entry in part.judged.items()},
    )


def _with_way_back(
    plan_input: PlanInput, children: Sequence[Child], parts: list[Plan]
) -> list[Plan]:
    """Return the plans of children; those left without an owner get the command to own them again.

    Such an object was restored from a backup, or kept when its resource was deleted. It has our
    label. Anybody may write that, so it decides nothing but the message.
    """
    left = [
        number
        for number, part in enumerate(parts)
        if any(known.reason == NAME_TAKEN for known in part.problems)
        and _is_left(plan_input, children[number])
    ]
    if not left:
        return parts
    refs = {n: plan_input.ref(children[n].kind.api, children[n].name) for n in left}
    how = (
        f": it has our label and no owner, as after a restore or `--cascade=orphan`."
        f" {_way_back(plan_input.resource, refs.values())}; if it is not ours, delete or rename one"
        " of the two"
    )
    plans = list(parts)
    for number, ref in refs.items():
        message = f"{ref} {TAKEN} {plan_input.resource}; it is left alone"
        message += how if number == left[0] else " as well"
        problem = Problem(NAME_TAKEN, message, about=ChildId(ref.api.kind, ref.name))
        plans[number] = replace(parts[number], problems=(problem,))
    return plans


def _way_back(resource: ObjectRef, left: Iterable[ObjectRef]) -> str:
    if resource.uid == PLACEHOLDER:
        return f"Once {resource} is stored, its status has the command that makes it a child again"
    command, count = owned_again(resource, left)
    them = "it a child" if count == 1 else f"these {count} children"
    return f"`{command}` makes {them} again, and changes nothing else"


def _is_left(plan_input: PlanInput, child: Child) -> bool:
    """Return whether an object with the name of a child is labelled as ours, and has no owner.

    One that is created once, such as a Job, is not: with an owner it would still not be the one
    that we created.
    """
    if not isinstance(child, Apply):
        return False
    namesake = plan_input.namesake(ChildId(child.kind.api.kind, child.name)) or {}
    is_ours = plan_input.installation.is_labelled(namesake, plan_input.controller)
    return is_ours and not metadata(namesake).get("ownerReferences")


def _planned(plan_input: PlanInput, child: Child) -> Plan:
    live = plan_input.live.get(ChildId(child.kind.api.kind, child.name))
    match child:
        case Keep():
            return relabelled(plan_input, child.kind.api, live) if live else Plan()
        case _:
            return ChildPlanner(plan_input, child).decide()


def relabelled(plan_input: PlanInput, api: ApiResource, live: Object) -> Plan:
    """Return the plan to put our label back on a child that is kept as it is.

    The apply declares again all that we hold. What somebody else holds by now is contested, and
    then there is no apply: the server would refuse it.
    """
    installation, controller = plan_input.installation, plan_input.controller
    body = extract(live, plan_input.field_manager)
    if body is None or is_terminating(live) or installation.is_labelled(live, controller):
        return Plan()
    meta: Object = body["metadata"]
    label = {installation.label_key: installation.label(controller)}
    body = {**body, "metadata": {**meta, "labels": {**meta.get("labels", {}), **label}}}
    ref = replace(plan_input.ref(api, meta["name"]), uid=meta["uid"])
    if contested := ownership.judge(body, live, plan_input.field_manager).contested:
        return Plan(contested=tuple(plan_input.report(ref, leaf) for leaf in contested))
    content = plan_input.content(ChildId(api.kind, meta["name"]))
    return Plan(writes=(Write(ref, body, create=False, content=content, once=True),))


def _surplus(
    plan_input: PlanInput,
    named: set[ChildId],
    kinds: Mapping[str, type[View]],
    shared: Mapping[str, tuple[str, ...]],
) -> tuple[list[Write | Deletion], tuple[Problem, ...]]:
    """Return the steps that remove undeclared children, and the problems of those that stay."""
    manager = plan_input.field_manager
    steps: list[Write | Deletion] = []
    problems: list[Problem] = []
    for (kind, name), live in sorted(plan_input.live.items()):
        if (kind, name) in named or is_terminating(live) or kind not in kinds:
            continue
        meta = metadata(live)
        ref = replace(plan_input.ref(kinds[kind].api, name), uid=meta["uid"])
        if kind in shared and others_hold_a_part(live, manager):
            step = disowned(kinds[kind].api, live, shared[kind])
            if ownership.judge(step.body, live, manager).settled:
                about = ChildId(kind, name)
                problems.append(Problem(NOT_OURS, f"{ref}: {_STILL_CHILD}", about=about))
            else:
                steps.append(step)
        else:
            steps.append(Deletion(ref, meta.get("resourceVersion", "")))
    return steps, tuple(problems)


Contributions = dict[ChildId, "Contribution | None"]
"""The contributions by target; None for one that cannot be made: its target stays as it is."""


def contributions_of(
    plan_input: PlanInput, desired: Desired, contributable: ContributableFields
) -> tuple[Contributions, tuple[Problem, ...]]:
    """Return the contribution to each target that compose names, and why some cannot be made."""
    contributions: Contributions = {}
    problems: list[Problem] = []
    for contribution in desired.contributions:
        target = ChildId(contribution.kind.api.kind, contribution.name)
        why = (
            "it is declared twice"
            if target in contributions
            else _forbids(plan_input, contribution, contributable)
        )
        if why:
            problems.append(
                Problem(
                    INVALID_CONTRIBUTION, f"nothing is contributed to {'/'.join(target)}: {why}"
                )
            )
        if target not in contributions:
            contributions[target] = None if why else contribution
    return contributions, tuple(problems)


def _forbids(
    plan_input: PlanInput, contribution: Contribution, contributable: ContributableFields
) -> str:
    """Return why a controller may not make a contribution; empty if it may."""
    api, resource = contribution.kind.api, plan_input.resource
    if api not in contributable or (api == resource.api and contribution.name != resource.name):
        return "the controller declares no contributions to it"
    _, undeclared = declared_part(contribution.fields, contributable[api])
    return f"the controller does not declare {', '.join(sorted(undeclared))}" if undeclared else ""


def _contributed(
    plan_input: PlanInput, contributions: Contributions, kinds: Mapping[str, ApiResource]
) -> Iterator[Plan]:
    """Yield the plan of each contribution, and of each object to which there is none any more."""
    if plan_input.writes_resource:
        yield plan_own(plan_input, contributions)
    targets = dict.fromkeys((*contributions, *sorted(plan_input.live)))
    for target in targets:
        contribution, (kind, name) = contributions.get(target), target
        if kind in kinds and (contribution is not None or target not in contributions):
            fields, waits = (contribution.fields, contribution.waits) if contribution else ({}, "")
            yield _contribution(plan_input, kinds[kind], name, fields, waits)


def _contribution(
    plan_input: PlanInput, api: ApiResource, name: str, fields: Object, waits: str = ""
) -> Plan:
    """Return the plan to hold these fields of an object, or to give it back if there are none."""
    if fields:
        return ContributionPlanner(plan_input, api, name, fields, waits).decide()
    live = plan_input.live.get(ChildId(api.kind, name))
    given = (
        None
        if live is None or is_terminating(live)
        else give_back(api, live, plan_input.field_manager)
    )
    return Plan(writes=(given,) if given else ())


def plan_abandoned(
    plan_input: PlanInput, abandoned: Iterable[tuple[ContributesTo, Object]]
) -> Plan:
    """Return the plan to give back the fields of abandoned objects, but for those that remain.

    An abandoned object still has fields of ours, and no resource contributes to it any more. Each
    comes with the `ContributesTo` of its kind, which says what remains.
    """
    manager = plan_input.field_manager
    given = (
        give_back(target.kind.api, obj, manager, target.remains(target.kind(obj), manager))
        for target, obj in abandoned
    )
    return Plan(writes=tuple(write for write in given if write is not None))


def plan_own(plan_input: PlanInput, contributions: Contributions, text: str | None = None) -> Plan:
    """Return the plan for a built-in resource itself: the contribution to it, and its annotation.

    One field manager's apply replaces all that it held, so both are one declaration. `text` is the
    annotation `hedgerow.dev/status`: empty for none, None to leave the annotation as it is.
    """
    resource = plan_input.resource
    own = ChildId(resource.api.kind, resource.name)
    live = plan_input.live.get(own, {})
    contribution = contributions.get(own)
    if contribution is None and own in contributions:
        return Plan()
    fields, waits = (contribution.fields, contribution.waits) if contribution else ({}, "")
    annotation = held(live, plan_input.field_manager) if text is None else text
    if annotation:
        meta: Object = fields.get("metadata") or {}
        given: Object = meta.get("annotations") or {}
        annotations = {**given, STATUS_ANNOTATION: annotation}
        fields = {**fields, "metadata": {**meta, "annotations": annotations}}
    return _contribution(plan_input, resource.api, resource.name, fields, waits)
