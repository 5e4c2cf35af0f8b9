"""Controller: the copies in each namespace.

A Namespace has the copies in it as children. Nothing is written to it, nor to a source: Events on
the sources say what is wrong with their copies.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

import hedgerow
from hedgerow import (
    ApiResource,
    Controller,
    ControllerOptions,
    Copy,
    Desired,
    Keep,
    Namespace,
    Notice,
    Object,
    Observed,
    Relation,
    Resource,
    Secret,
    Select,
    SourceNotice,
    View,
)
from hedgerow.controllers.secretsync.options import OPTIONS, Selection
from hedgerow.controllers.secretsync.sources import (
    MEANT,
    TARGET_NAME,
    CopiedSecret,
    Targets,
    targets_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_READ = (
    "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
)  # fmt: skip
"""The metadata of a source that is read, besides the names of annotations with our prefix."""
LONGEST_SHOWN = 80
"""The most characters of an annotation's name that are told."""


class TargetNamespace(Resource):
    """A Namespace; nothing is installed for it, and nothing is written to it."""

    api: ClassVar[ApiResource] = Namespace.api


def compose(options: Selection, namespace: TargetNamespace, observed: Observed) -> Desired:
    """Declare the copies that a namespace is to have."""
    meta = namespace.metadata
    if meta.deletion_timestamp or not options.is_target(meta.name, meta.labels):
        return Desired()
    related = (CopiedSecret(view.raw) for view in observed.related if not is_going(view))
    targets = targets_of(related)
    # A copy that is being deleted cannot be kept, and only whoever set a finalizer can let it go.
    there = {copy.name: copy for copy in observed.children if not is_going(copy)}
    mistaken = {source.label: source for source in targets.mistaken}
    kept = {
        name: mistaken[label]
        for name, copy in there.items()
        for label, value in copy.labels.items()
        if label in mistaken and value == mistaken[label].namespace
    }
    children: list[Copy | Keep] = [Keep(Secret, name) for name in sorted(kept)]
    for source in targets.copied:
        if source.target not in kept:
            live = there.get(source.target)
            anew = live is not None and not source.fits(live, observed.field_manager)
            children.append(Copy(Secret, source.target, source.fields, source=source, anew=anew))
    return Desired(tuple(children), events=tuple(warnings(targets, kept, meta.name)))


def warnings(
    targets: Targets, kept: Mapping[str, CopiedSecret], namespace: str
) -> Iterator[Notice]:
    """Yield the mistakes of the sources themselves; most are the same in all namespaces."""
    for source in targets.mistaken:
        yield _warning(
            source, "InvalidAnnotation", f"{source.mistake}; its copies stay as they are"
        )
    for source, older in targets.taken:
        yield _taken(source, older)
    for source in targets.copied:
        if source.target in kept:
            yield _taken(source, kept[source.target], f" in {namespace}")
    for source in (*targets.copied, *targets.mistaken):
        for name in source.unknown:
            meant = " and ".join(MEANT)
            text = f"{name[:LONGEST_SHOWN]} means nothing: there are {meant}"
            yield _warning(source, "UnknownAnnotation", text)


def _taken(source: CopiedSecret, other: CopiedSecret, where: str = "") -> Notice:
    return _warning(
        source,
        "TargetTaken",
        f"Secret/{source.target}{where} is the copy of Secret/{other.name}, so this Secret is not"
        f" copied: a target has one source, the oldest. Choose another {TARGET_NAME}",
    )


def _warning(source: CopiedSecret, reason: str, note: str) -> Notice:
    return SourceNotice(reason, note, "Warning", source=source)


def is_going(secret: View) -> bool:
    """Return whether a Secret is being deleted."""
    return bool(secret.at("metadata", "deletionTimestamp"))


def reduced(secret: Object) -> Object:
    """Return a source with no more of its metadata than is read."""
    meta, source = secret["metadata"], CopiedSecret(secret)
    meant = {name: source.annotations[name] for name in MEANT if name in source.annotations}
    kept = {key: meta[key] for key in _READ if key in meta}
    return {
        **secret,
        "metadata": {**kept, "annotations": meant | dict.fromkeys(source.unknown, "")},
    }


def _sources(options: Selection) -> Relation:
    select = Select(namespace=options.namespace, fields=f"type={options.type}")
    return Relation(Secret, select=select, reduce=reduced)


def secretsync(options: Selection) -> Controller[TargetNamespace]:
    """Return the controller for some options."""
    return hedgerow.Controller(
        "secretsync",
        TargetNamespace,
        partial(compose, options),
        owns=(Secret,),
        relates=(_sources(options),),
        child_names={Secret: ("*",)},
        opt_in=True,
        options=ControllerOptions(OPTIONS, configured),
        shared={Secret: ("type",)},
    )


def configured(given: Mapping[str, str]) -> Controller[TargetNamespace]:
    """Return the controller for options that are given as text; raises ValueError."""
    return secretsync(Selection.parse(given))


CONTROLLER = secretsync(Selection())
