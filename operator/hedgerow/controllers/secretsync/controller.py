"""Controller: the copies of each namespace, and what the sources are told about them.

There are two resources. A Namespace has the copies in it as children: its pass sees all sources at
once, so that each copy is one declaration of all that share it. A source has no children. It is
held until no namespace has a copy of it, and its Events and annotation say what the passes of the
namespaces found.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from sys import intern
from typing import TYPE_CHECKING, ClassVar

import hedgerow
from hedgerow import (
    ApiResource,
    Apply,
    BuiltIn,
    Condition,
    Controller,
    ControllerOptions,
    Copies,
    Desired,
    Keep,
    Key,
    Namespace,
    Notice,
    Object,
    Observed,
    Relation,
    Report,
    Resource,
    Secret,
    Status,
    View,
    condition,
    stalled,
)
from hedgerow.controllers.secretsync.options import OPTIONS, Selection
from hedgerow.controllers.secretsync.sharing import (
    FINALIZER,
    MEANT,
    NAMED,
    TARGET_NAME,
    TARGET_TYPE,
    CopiedSecret,
    TargetSecret,
    origins_of,
    targets,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


CONFLICTS = ("FieldConflict", "KeyConflict")
MANY = (1, 3, 10, 30, 100, 300, 1000, 3000)
"""Numbers of other namespaces that a message tells apart: a message that counts them all would
change, and be written, with each one."""
_READ = (
    "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
    "finalizers",
)  # fmt: skip
"""What of a source's metadata is read, besides two annotations."""
LONGEST_SHOWN = 80
"""The most characters of an annotation's name that are told."""
MOST_TOLD = 8
"""How many findings a source tells, each with an Event of its own."""


class TargetNamespace(Resource):
    """A Namespace; nothing is installed for it, and nothing is written to it."""

    api: ClassVar[ApiResource] = Namespace.api


class SourceSecret(Resource):
    """A Secret that is copied."""

    api: ClassVar[ApiResource] = Secret.api


def copies(options: Selection, namespace: TargetNamespace, observed: Observed) -> Desired:
    """Declare the copies that a namespace is to have."""
    meta = namespace.metadata
    if meta.deletion_timestamp or not options.is_target(meta.name, meta.labels):
        return Desired()
    related = [CopiedSecret(view) for view in observed.related]
    sources = [source for source in related if not source.is_going]
    going = [source for source in related if source.is_going]
    present = [source for source in sources if source.is_held and source.is_readable]
    # What a source is to have is not known while its annotations cannot be read, nor is it
    # copied before our finalizer holds it: what there is of it stays as it is.
    unclear = {source.key for source in sources} - {source.key for source in present}
    # A copy that is being deleted cannot be kept, and only whoever set a finalizer can let it go.
    there = {
        copy.name: copy
        for copy in observed.children
        if not copy.text("metadata", "deletionTimestamp")
    }
    untouched = {
        copy.name: part.key
        for copy in there.values()
        for part in origins_of(copy)
        if part.key in unclear
    }
    children: list[Apply | Keep] = [Keep(Secret, name) for name in sorted(untouched)]
    wanted = targets(present)
    for name, target in wanted.items():
        if name not in untouched:
            anew = name in there and not target.fits(there[name])
            children.append(Apply(Secret, name, target.fields, anew=anew))
    leaving = {source.key for source in going}
    shared = {
        name: [part.key for part in origins_of(there[name]) if part.key in leaving]
        for name in untouched
    }
    reports = _reports(meta.name, untouched, wanted, shared)
    return Desired(tuple(children), reports=reports)


def _reports(
    namespace: str,
    untouched: Mapping[str, Key],
    wanted: Mapping[str, TargetSecret],
    leaving: Mapping[str, Iterable[Key]],
) -> dict[Key, tuple[Report, ...]]:
    """Return what the sources are told about those with which they share a copy.

    `leaving` are the sources of each untouched copy that are being deleted.
    """
    said: defaultdict[Key, list[Report]] = defaultdict(list)

    def add(key: Key, name: str, reason: str, message: str) -> None:
        # The messages are the same in all namespaces: one text for all of them.
        report = Report(Key("", namespace), intern(f"Secret/{name}"), reason, intern(message), True)
        said[key].append(report)

    for name, target in wanted.items():
        for source in target.sources:
            for message in target.clashes(source):
                add(source.key, name, "KeyConflict", message)
    for name, unclear in untouched.items():
        sharing = wanted[name].sources if name in wanted else ()
        for key in dict.fromkeys((*(source.key for source in sharing), *leaving[name])):
            message = (
                f"Secret/{name} stays as it is until hedgerow knows the data of"
                f" Secret/{unclear[1]}, which shares it"
            )
            add(key, name, "Kept", message)
    return {key: tuple(reports) for key, reports in said.items()}


def report(secret: SourceSecret, observed: Observed) -> Desired:
    """Hold a source while there are copies of it, and say what is wrong with them."""
    going = secret.metadata.deletion_timestamp is not None
    hold = observed.in_use or not going
    found = _few(list(_findings(observed)))
    if not found:
        return Desired(hold=hold)
    conditions = tuple(_conditions(found))
    more = tuple(Notice(reason, message, "Warning") for reason, message in found[1:])
    return Desired(status=Status(conditions=conditions), events=more, hold=hold)


def _conditions(found: list[tuple[str, str]]) -> Iterator[Condition]:
    yield from stalled(found[0][0], "; ".join(message for _, message in found))
    if contested := [(reason, message) for reason, message in found if reason in CONFLICTS]:
        message = "; ".join(message for _, message in contested)
        yield condition("Contested", True, contested[0][0], message)


def _findings(observed: Observed) -> Iterator[tuple[str, str]]:
    """Yield reason and message of all that is wrong, each reason and message once."""
    if observed.resource is not None and (mistake := CopiedSecret(observed.resource).mistake):
        yield "InvalidAnnotation", f"{mistake}; its copies stay as they are"
    for name in CopiedSecret(observed.resource).unknown if observed.resource is not None else ():
        there_are = " and ".join(MEANT)
        yield "UnknownAnnotation", f"{name[:LONGEST_SHOWN]} means nothing: there are {there_are}"
    yield from merged(observed.reports)


def _few(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return a bounded number of findings, and about how many others there are.

    The first one of each reason comes before the second one of any.
    """
    more = len(found) - MOST_TOLD
    if more <= 0:
        return found
    seen: Counter[str] = Counter()
    turns: list[int] = []
    for reason, _ in found:
        turns.append(seen[reason])
        seen[reason] += 1
    by_turn = sorted(range(len(found)), key=turns.__getitem__)
    chosen = [found[number] for number in sorted(by_turn[: MOST_TOLD - 1])]
    return [*chosen, (chosen[-1][0], f"at least {_at_least(more + 1)} more are not listed")]


def merged(reports: Iterable[Report]) -> Iterator[tuple[str, str]]:
    """Yield reason and message of what was found in all namespaces together.

    What one field manager holds of the copies with one name is told together.
    """
    groups: defaultdict[tuple[str, str, str], list[Report]] = defaultdict(list)
    for report in reports:
        own = report.message if report.reason == "KeyConflict" else report.holder
        groups[report.reason, report.child, own].append(report)
    for reason, child, own in sorted(groups):
        if reason == "KeyConflict":
            yield reason, own  # it is the same in all namespaces
            continue
        alike = sorted(groups[reason, child, own], key=lambda report: report.by)
        places = _places([report.by[1] for report in alike])
        if reason == "NameTaken":
            yield reason, f"{child} exists in {places} and is not a copy; it is left alone"
        elif reason == "FieldConflict":
            paths = sorted({report.path for report in alike})
            more = f" and at least {_at_least(len(paths) - 1)} more fields are" if paths[1:] else ""
            yield reason, f"{child}: {paths[0]}{more or ' is'} held by {own}, in {places}"
        else:
            yield reason, f"{alike[0].message}, in {places}"


def _places(namespaces: list[str]) -> str:
    """Return the first namespaces, and about how many others there are."""
    names = list(dict.fromkeys(namespaces))
    more = len(names) - NAMED
    if more <= 0:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and at least {_at_least(more)} more"


def _at_least(number: int) -> int:
    return max(one for one in MANY if one <= number)


def reduced(secret: Object) -> Object:
    """Return a source with no more of its metadata than is read: not what we say on it."""
    meta, annotations = secret["metadata"], View(secret).mapping("metadata", "annotations")
    read = {key: annotations[key] for key in (TARGET_NAME, TARGET_TYPE) if key in annotations}
    kept = {key: meta[key] for key in _READ if key in meta}
    return {**secret, "metadata": {**kept, "annotations": read}}


def _sources_of(namespace: str, copy: View) -> Iterable[Key]:
    return [Key(namespace, part.name) for part in origins_of(copy) if part.namespace == namespace]


def _sources(options: Selection) -> Relation:
    fields = f"type={options.type}"
    return Relation(Secret, namespace=options.namespace, fields=fields, reduce=reduced)


def secretsource(options: Selection) -> Controller[SourceSecret]:
    """Return the controller of the sources for some options."""
    return hedgerow.Controller(
        "secretsource",
        SourceSecret,
        report,
        owns=(),
        opt_in=True,
        built_in=BuiltIn(
            namespace=options.namespace,
            fields=f"type={options.type}",
            hold_finalizer=FINALIZER,
        ),
    )


def secretsync(
    options: Selection, sources: Controller[SourceSecret] | None = None
) -> Controller[TargetNamespace]:
    """Return the controller of the copies for some options, which informs the sources."""
    return hedgerow.Controller(
        "secretsync",
        TargetNamespace,
        partial(copies, options),
        owns=(Secret,),
        relates=(_sources(options),),
        child_names={Secret: ("*",)},
        opt_in=True,
        options=ControllerOptions(OPTIONS, configured),
        copies=Copies(
            sources=sources or secretsource(options),
            of=partial(_sources_of, options.namespace),
            shared={Secret: ("type",)},
        ),
    )


def configured(given: Mapping[str, str]) -> Controller[TargetNamespace]:
    """Return the controller for options that are given as text; raises ValueError."""
    return secretsync(Selection.read(given))


SOURCES = secretsource(Selection())
CONTROLLER = secretsync(Selection(), SOURCES)
