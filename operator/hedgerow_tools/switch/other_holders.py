"""Other holders: who else holds the field of `promote` and `rollback`, and would put it back.

A person's tool wrote the field once, and the command was typed later. An applier writes its whole
manifest again and again, so that what is taken from it does not last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.encoding import encode
from hedgerow.fields.managed_fields import entries, holders
from hedgerow.objects import metadata
from hedgerow.texts import command_line, printable, within
from hedgerow_schemas.base import View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_tools.fields.relabelling import APPLY, HELM, KUBECTL, is_client_side_apply

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow.fields.managed_fields import Holder
    from hedgerow_schemas.base import Object
    from hedgerow_tools.switch.decision import Setting


@dataclass(frozen=True, slots=True)
class ManifestApplier:
    """A program that applies manifests: where these are changed, and what to do beside a patch.

    `first` holds it up, `after` says what its next apply meets.
    """

    name: str
    where: str = "in the manifest that it applies"
    first: str = "stop it"
    after: str = ""


_ARGO_CD: Final = ManifestApplier("Argo CD", "in Git", "turn off its automated sync")
_FLUX: Final = ManifestApplier("Flux", "in Git", "suspend it")
_HELM: Final = ManifestApplier(
    "Helm",
    "in the chart or its values, and upgrade the release",
    "",
    "Helm 4 then refuses an upgrade with another value, unless with --force-conflicts",
)
APPLIERS: Final[Mapping[str, ManifestApplier]] = {
    **dict.fromkeys(HELM, _HELM),
    **dict.fromkeys(("argocd-controller", "argocd-application-controller"), _ARGO_CD),
    **dict.fromkeys(("kustomize-controller", "helm-controller", "flux"), _FLUX),
    "fleetagent": ManifestApplier("Fleet", "in Git"),
    "kapp": ManifestApplier("kapp"),
}
"""Those that field managers tell, whichever way they write: Helm 3, for example, updates."""


def others(live: Object, setting: Setting, manager: str) -> tuple[Holder, ...]:
    """Return who else holds the field."""
    holding = holders(View(live), "spec", setting.field)
    return tuple(holder for holder in holding if not holder.is_applier(manager, ""))


def applier(holder: Holder) -> ManifestApplier | None:
    """Return the program that would put its value back; None for a person's tool.

    Of kubectl a person decides when it writes again, whichever command it was. So it is with all
    that updates and is not known: an editor, a dashboard, a script.
    """
    if holder.manager == KUBECTL or holder.manager.startswith(f"{KUBECTL}-"):
        return None
    known = APPLIERS.get(holder.manager)
    return known or (ManifestApplier(holder.manager) if holder.operation == APPLY else None)


def in_the_way(live: Object, setting: Setting, holding: Iterable[Holder]) -> str:
    """Return which programs would put the field back, and what to change there.

    Empty if the field may be taken from all of these holders.
    """
    programs = {holder.manager: program for holder in holding if (program := applier(holder))}
    if not programs:
        return ""
    hold = "hold" if len(programs) > 1 else "holds"
    where = _joined(program.where for program in programs.values())
    first = _joined(program.first for program in programs.values())
    after = _joined(program.after for program in programs.values())
    return (
        f"{_joined(map(_named, programs, programs.values()))} {hold} {setting.path} of"
        f" {live['kind']}/{metadata(live)['name']} and would put it back, so nothing was changed:"
        f" write `{setting.line}` below `spec:` {where}; if that cannot wait,"
        f" {f'{first} and then ' if first else ''}`{patch(live, setting)}`"
        f"{f'; {after}' if after else ''}"
    )


def patch(live: Object, setting: Setting) -> str:
    """Return the command that sets the field by hand, ready to paste into a shell.

    It is no apply: kubectl would make another field manager hold all that it applied before.
    """
    api, meta = BlueGreen.api, metadata(live)
    body = encode({"spec": {setting.field: setting.value}}).decode()
    target = (f"{api.plural}.{api.group}", meta["name"], *within(meta["namespace"]))
    return command_line("kubectl", "patch", *target, "--type", "merge", "-p", body)


def later(live: Object, setting: Setting, manager: str) -> Iterator[str]:
    """Yield what the next applies of those meet, or do, who have another value in a manifest."""
    records = [(holder, tree) for holder, _, tree in entries(live) if "f:spec" in tree]
    appliers = [
        f"`{KUBECTL} apply --server-side`" if holder.manager == KUBECTL else holder.manager
        for holder, _ in records
        if holder.operation == APPLY and holder.manager != manager
    ]
    if appliers:
        yield (
            f"from now on, an apply by {_joined(map(printable, appliers))} with another"
            f" {setting.field} conflicts with {manager}, unless it is forced (--force-conflicts):"
            f" write `{setting.line}` in its manifest too"
        )
    if any(
        f"f:{setting.field}" in tree["f:spec"] and is_client_side_apply(holder, tree)
        for holder, tree in records
    ):
        yield (
            f"the next `{KUBECTL} apply` of a manifest with another {setting.field} sets that"
            f" again: write `{setting.line}` there too"
        )


def _named(manager: str, program: ManifestApplier) -> str:
    name = printable(manager)
    return name if program.name == manager else f"{program.name} ({name})"


def _joined(words: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(filter(None, words)))
