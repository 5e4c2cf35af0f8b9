"""Discovery: which kind a word such as `deploy`, `Ingress` or `events.v1.` stands for."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio

from hedgerow.kube.errors import Forbidden, Garbled, Missing, Unavailable
from hedgerow_schemas.base import ApiResource, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.kube.cluster import Cluster

_USUAL = frozenset({"get", "list", "patch"})
_EVENTS = frozenset({("", "events"), ("events.k8s.io", "events")})
SECONDS = 10.0
"""Seconds to read the kinds of a group version: the user need not wait for an API that is down."""


@dataclass(frozen=True, slots=True)
class FoundKind:
    """The kind that is meant, `others` with the same name, and group versions that `failed`."""

    api: ApiResource
    others: tuple[ApiResource, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """The `versions` that the server serves, and the `kinds` that clients may list and patch.

    Of each group's kinds it has the preferred version. `failed` are group versions without answer.
    """

    versions: frozenset[str]
    kinds: tuple[ApiResource, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Kind:
    api: ApiResource
    names: frozenset[str]
    short: frozenset[str]
    verbs: frozenset[str]

    def rank(self, name: str) -> int | None:
        """Return 0 for a full name, 1 for a short name, None for any other word."""
        if name in self.names:
            return 0
        return 1 if name in self.short else None


def spelled(api: ApiResource) -> str:
    """Return an unambiguous name of a kind: `events.v1.events.k8s.io`, `events.v1.`."""
    return f"{api.plural}.{api.version}.{api.group}"


async def find(cluster: Cluster, word: str) -> FoundKind:
    """Return the kind of a plural, singular, kind or short name, with or without group and version.

    These are written as `.group` or `.version.group`. Case does not matter. As in kubectl, a full
    name goes before a short one, the core group before the others in the server's order, and a
    group's preferred version before its other ones. Raises Missing if no kind is meant, and
    KubeError.
    """
    name, _, suffix = word.lower().partition(".")
    versions = [version for version in await group_versions(cluster) if _is_meant(version, suffix)]
    kinds, failed = await _kinds(cluster, versions)
    matching = [(rank, kind) for kind in kinds if (rank := kind.rank(name)) is not None]
    groups: dict[str, ApiResource] = {}
    for _, kind in sorted(matching, key=lambda pair: pair[0]):
        groups.setdefault(kind.api.group, kind.api)
    if not groups:
        raise Missing(_unknown(word, name, kinds, failed), code=HTTPStatus.NOT_FOUND)
    first, *others = groups.values()
    return FoundKind(first, tuple(others), tuple(failed))


async def served(cluster: Cluster) -> ServedKinds:
    """Return all that the server serves. Raises KubeError.

    Events are left out: only controllers write them, and each of them only once or twice.
    """
    versions = await group_versions(cluster)
    listed, failed = await _kinds(cluster, versions)
    first: dict[tuple[str, str], ApiResource] = {}
    for kind in listed:
        api = kind.api
        if kind.verbs >= _USUAL and (api.group, api.plural) not in _EVENTS:
            first.setdefault((api.group, api.plural), api)
    return ServedKinds(frozenset(versions), tuple(first.values()), tuple(failed))


async def kinds(cluster: Cluster) -> list[str]:
    """Return the plural of each kind; with its group where an earlier group has the same plural.

    Raises KubeError.
    """
    listed, _ = await _kinds(cluster, await group_versions(cluster))
    first: dict[str, str] = {}
    for api in (kind.api for kind in listed):
        first.setdefault(api.plural, api.group)
    return list(
        dict.fromkeys(
            api.plural if first[api.plural] == api.group else f"{api.plural}.{api.group}"
            for api in (kind.api for kind in listed)
        )
    )


def _unknown(word: str, name: str, kinds: Iterable[_Kind], failed: Sequence[str]) -> str:
    known = sorted({known for kind in kinds for known in (*kind.names, *kind.short)})
    close = get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    unsure = f" ({', '.join(failed)} gave no answer)" if failed else ""
    return f'the server serves no kind "{word}"{unsure}{hint}'


async def group_versions(cluster: Cluster) -> list[str]:
    """Return every group version: the core group first, each group's preferred version first."""
    core, groups = View(await cluster.get("/api")), View(await cluster.get("/apis"))
    versions = [str(version) for version in core.items("versions")]
    for group in map(View, groups.items("groups")):
        versions.append(group.text("preferredVersion", "groupVersion"))
        versions += [View(version).text("groupVersion") for version in group.items("versions")]
    return list(dict.fromkeys(versions))


def _is_meant(group_version: str, rest: str) -> bool:
    group, _, version = group_version.rpartition("/")
    return rest in {"", group, f"{version}.{group}", *([] if group else [version])}


async def _kinds(cluster: Cluster, versions: Sequence[str]) -> tuple[list[_Kind], list[str]]:
    """Return the kinds of all group versions, and the group versions that could not be read."""
    lists: dict[str, list[_Kind]] = {}

    async def ask(version: str) -> None:
        root = "apis" if "/" in version else "api"
        try:
            resources = View(await cluster.get(f"/{root}/{version}", timeout=SECONDS))
        except (Forbidden, Garbled, Missing, Unavailable):
            return
        entries = map(View, resources.items("resources"))
        lists[version] = [_kind(version, entry) for entry in entries if _is_readable(entry)]

    async with anyio.create_task_group() as group:
        for version in versions:
            group.start_soon(ask, version)
    kinds = [kind for version in versions for kind in lists.get(version, ())]
    return kinds, [version for version in versions if version not in lists]


def _is_readable(entry: View) -> bool:
    return "/" not in entry.text("name") and "get" in entry.items("verbs")


def _kind(group_version: str, entry: View) -> _Kind:
    plural, kind = entry.text("name"), entry.text("kind")
    api = ApiResource(group_version, kind, plural, bool(entry.at("namespaced")))
    names = {plural, entry.text("singularName"), kind.lower()} - {""}
    short, verbs = (frozenset(map(str, entry.items(name))) for name in ("shortNames", "verbs"))
    return _Kind(api, frozenset(names), short, verbs)
