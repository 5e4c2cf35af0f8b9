"""Controller: the copies of each namespace, and what the sources are told about them.

There are two resources. A Namespace has the copies in it as children: its pass sees all sources at
once, so that each copy is one declaration of all that share it. A source has no children. It is
held until no namespace has a copy of it, and its Events and annotation say what the passes of the
namespaces found.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

import hedgerow
from hedgerow import (
    Absent,
    ApiResource,
    Apply,
    Condition,
    Controller,
    Desired,
    Informs,
    Keep,
    Namespace,
    Notice,
    Object,
    Observed,
    Relation,
    Report,
    Resource,
    Secret,
    Shared,
    Status,
    View,
    Watch,
    condition,
    stalled,
)
from hedgerow.controllers.secretsync.options import OPTIONS, Options
from hedgerow.controllers.secretsync.sharing import (
    FINALIZER,
    TARGET_NAME,
    Source,
    parts_of,
    targets,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow import Key

CONFLICTS = ("FieldConflict", "KeyConflict")
NAMED = 3
"""How many namespaces a message names."""
MANY = (1, 3, 10, 30, 100, 300, 1000, 3000)
"""Numbers of other namespaces that a message tells apart: a message that counts them all would
change, and be written, with each one."""


class TargetNamespace(Resource):
    """A Namespace; nothing is installed for it, and nothing is written to it."""

    api: ClassVar[ApiResource] = Namespace.api


class SourceSecret(Resource):
    """A Secret that is copied."""

    api: ClassVar[ApiResource] = Secret.api


def copies(options: Options, namespace: TargetNamespace, observed: Observed) -> Desired:
    """Declare the copies that a namespace is to have."""
    meta = namespace.metadata
    if meta.deletion_timestamp or not options.is_target(meta.name, meta.labels):
        return Desired()
    sources = [source for source in map(Source, observed.related) if not source.is_going]
    present = [source for source in sources if source.is_held and source.is_readable]
    # What a source is to have is not known while its target's name cannot be read, nor is it
    # copied before our finalizer holds it: what there is of it stays as it is.
    unclear = {source.key for source in sources} - {source.key for source in present}
    untouched = {
        copy.name: part.key
        for copy in observed.children
        for part in parts_of(copy)
        if part.key in unclear
    }
    children: list[Apply | Keep] = [Keep(Secret, name) for name in sorted(untouched)]
    for name, target in targets(present).items():
        if name not in untouched:
            live = observed.child(Secret, name)
            anew = live is not None and not target.fits(live)
            children.append(Apply(Secret, name, target.fields, anew=anew))
    # A copy of a source that is being deleted may be from before the start: it cannot be watched.
    going = [source for source in map(Source, observed.related) if source.is_going]
    named = {child.name for child in children}
    gone = [
        Absent(Secret, name, target.fields)
        for name, target in targets(source for source in going if source.is_readable).items()
        if name not in named
    ]
    return Desired((*children, *gone), reports=_kept(meta.name, untouched, present))


def _kept(
    namespace: str, copies: Mapping[str, Key], present: list[Source]
) -> dict[Key, tuple[Report, ...]]:
    """Return what the sources are told whose copy stays as it is because of another source."""
    found: dict[Key, tuple[Report, ...]] = {}
    for source in present:
        if (unclear := copies.get(source.target)) is not None:
            child = f"Secret/{source.target}"
            message = (
                f"{child} stays as it is until it is known what Secret/{unclear[1]}, which shares"
                " it, is to have"
            )
            report = Report(("", namespace), child, "Kept", message, stalled=True)
            found[source.key] = (report,)
    return found


def report(secret: SourceSecret, observed: Observed) -> Desired:
    """Hold a source while there are copies of it, and say what is wrong with them."""
    going = secret.metadata.deletion_timestamp is not None
    hold = observed.in_use or not going
    found = list(_findings(secret, observed, going=going))
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


def _findings(
    secret: SourceSecret, observed: Observed, *, going: bool
) -> Iterator[tuple[str, str]]:
    """Yield reason and message of all that is wrong, each reason and message once."""
    sources = [Source(view) for view in observed.related]
    mine = next((one for one in sources if one.view.uid == secret.metadata.uid), None)
    if mine is not None and not mine.is_readable:
        message = (
            f"the annotation {TARGET_NAME} is no name of a Secret; its copies stay as they are"
        )
        yield "InvalidAnnotation", message
    elif mine is not None and not (going or mine.is_going):
        present = [one for one in sources if one.is_readable and not one.is_going]
        for message in targets(present)[mine.target].clashes(mine.name):
            yield "KeyConflict", message
    yield from told(observed.reports)


def told(reports: Iterable[Report]) -> Iterator[tuple[str, str]]:
    """Yield reason and message of what was found in all namespaces together."""

    def what(report: Report) -> tuple[str, str, str]:
        own = report.message if report.reason == "FieldConflict" else ""
        return report.reason, report.child, own

    for (reason, child, _), same in groupby(sorted(reports, key=what), key=what):
        alike = sorted(same, key=lambda report: report.by)
        places = _places([report.by[1] for report in alike])
        if reason == "NameTaken":
            yield reason, f"{child} exists in {places} and is not a copy; it is left alone"
        else:
            yield reason, f"{alike[0].message}, in {places}"


def _places(namespaces: list[str]) -> str:
    """Return the first namespaces, and about how many others there are."""
    names = list(dict.fromkeys(namespaces))
    more = len(names) - NAMED
    if more <= 0:
        return ", ".join(names)
    least = max(number for number in MANY if number <= more)
    return f"{', '.join(names[:NAMED])} and at least {least} more"


def reduced(secret: Object) -> Object:
    """Return a source without its managed fields."""
    meta = {key: value for key, value in secret["metadata"].items() if key != "managedFields"}
    return {**secret, "metadata": meta}


def _sources_of(namespace: str, copy: View) -> Iterable[Key]:
    return [(namespace, part.name) for part in parts_of(copy) if part.namespace == namespace]


def _sources(options: Options) -> Relation:
    fields = f"type={options.type}"
    return Relation(Secret, namespace=options.namespace, fields=fields, reduce=reduced)


def secretsource(options: Options) -> Controller[SourceSecret]:
    """Return the controller of the sources for some options."""
    return hedgerow.Controller(
        "secretsource",
        SourceSecret,
        report,
        owns=(),
        relates=(_sources(options),),
        watch=Watch(namespace=options.namespace, fields=f"type={options.type}"),
        finalizer=FINALIZER,
        opt_in=True,
    )


def secretsync(
    options: Options, sources: Controller[SourceSecret] | None = None
) -> Controller[TargetNamespace]:
    """Return the controller of the copies for some options, which informs that of the sources."""
    return hedgerow.Controller(
        "secretsync",
        TargetNamespace,
        partial(copies, options),
        owns=(Secret,),
        relates=(_sources(options),),
        shared=(Shared(Secret, keeps=("type",)),),
        child_names={Secret: ("*",)},
        blind=options.blind,
        informs=Informs(sources or secretsource(options), partial(_sources_of, options.namespace)),
        opt_in=True,
        options=OPTIONS,
        configure=configured,
    )


def configured(given: Mapping[str, str]) -> Controller[TargetNamespace]:
    """Return the controller for options that are given as text; raises ValueError."""
    return secretsync(Options.read(given))


SOURCES = secretsource(Options())
CONTROLLER = secretsync(Options(), SOURCES)
