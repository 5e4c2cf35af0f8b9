"""Lacking rights: those of controllers and of the election that the operator does not have.

A candidate that lacks a right is not ready, and says which. So a rollout whose RBAC is missing
stops, and the leader before it goes on. A leader is not made unready by it: it
serves all that it has rights for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import structlog

from hedgerow.backoff import backoff
from hedgerow.deploy.rights import VERBS, of_controllers, of_lease
from hedgerow.kube.errors import (
    KubeError,
    Missing,
    Throttled,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from hedgerow.kube.reviews import may_we, own_rights
from hedgerow.shard import lease_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from hedgerow.contract import Controller
    from hedgerow.deploy.rights import Right, RightSet
    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow.settings import Settings

FIRST_ANSWER = 5.0
"""Seconds for which a candidate waits for the first answer before it stands for election."""
FIRST, LONGEST = 1.0, 30.0
"""Seconds between two questions: they double from one to the other."""
ELECTION = "the election"
"""The name in the place of a controller's for the rights on the Lease."""
SHOWN = 5
"""The most lacking rights that are named."""
_PASSING = (Throttled, Unauthenticated, Unavailable, Unreachable)
"""Errors after which the question is asked again."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LackingRight:
    """Verbs on one resource that are not granted in a namespace, or in all if that is empty."""

    resource: str
    """As in `jobs.batch`, or for one object as in `leases.coordination.k8s.io/hedgerow`."""
    verbs: tuple[str, ...]
    namespace: str
    controllers: tuple[str, ...]
    """The names of the controllers that need it, or `ELECTION`."""

    def __str__(self) -> str:
        """Return it as in `list,watch jobs.batch in all namespaces for bluegreen`."""
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        what = f"{','.join(self.verbs)} {self.resource}"
        return f"{what} in {where} for {', '.join(self.controllers)}"


async def lacking_rights(
    cluster: Cluster,
    controllers: Iterable[Controller[Any]],
    namespaces: Sequence[str],
    election: RightSet = frozenset(),
) -> list[LackingRight]:
    """Return the rights that controllers need in these namespaces and that we lack.

    No namespaces mean all. `election` are those that being elected needs, each in its namespace.
    One request a namespace shows the rights that rules grant; each other right takes a request of
    its own. Raises KubeError.
    """
    lacking: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for namespace, needed in _needed(controllers, namespaces, election).items():
        granted = await own_rights(cluster, namespace)
        for right, names in needed.items():
            asked = right.verb, right.group, right.resource
            if granted.allow(*asked, right.name):
                continue
            if not await may_we(cluster, *asked, namespace, name=right.name):
                kind = ".".join(filter(None, (right.resource, right.group)))
                what = f"{kind}/{right.name}" if right.name else kind
                lacking.setdefault((what, namespace, tuple(names)), []).append(right.verb)
    return [
        LackingRight(kind, tuple(sorted(verbs, key=VERBS.index)), namespace, names)
        for (kind, namespace, names), verbs in lacking.items()
    ]


def _needed(
    controllers: Iterable[Controller[Any]], namespaces: Sequence[str], election: RightSet
) -> dict[str, dict[Right, list[str]]]:
    """Return who needs each right, by the namespace in which it is needed."""
    rights = [
        (controller.name, right)
        for controller in controllers
        for right in sorted(of_controllers([controller]))
    ]
    rights += [(ELECTION, right) for right in sorted(election)]
    needed: dict[str, dict[Right, list[str]]] = {}
    for needing, right in rights:
        for place in (right.namespace,) if right.namespace else namespaces or ("",):
            names = needed.setdefault(place, {}).setdefault(replace(right, namespace=""), [])
            names += [] if needing in names else [needing]
    return needed


def in_one_line(lacking: Sequence[LackingRight]) -> str:
    """Return lacking rights as one line, of which the first ones are named."""
    named = "; ".join(map(str, lacking[:SHOWN]))
    more = len(lacking) - SHOWN
    return f"{named}; and {more} more" if more > 0 else named


class RightsCheck:
    """Whether a candidate has the rights that its controllers need; it asks until it has them."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        controllers: Sequence[Controller[Any]],
        clock: Clock,
    ) -> None:
        self._cluster, self._controllers, self._clock = cluster, controllers, clock
        self._namespaces = settings.namespaces
        self._election: RightSet = frozenset()
        if settings.leader_elect:
            lease = lease_name(settings.installation.base, settings.part)
            self._election = of_lease(lease, settings.system_namespace)
        self._reason = "the API server has not been asked yet"
        self._leads = False

    def check(self) -> str:
        """Return why we are not ready: the rights that lack; empty if none does, or we lead."""
        return self._reason

    def gives_way(self) -> bool:
        """Return whether another candidate is to lead rather than we; callable from any thread."""
        return bool(self._reason)

    def leads(self) -> None:
        """Take in that we lead: from now on nothing is asked, and nothing makes us unready."""
        self._leads, self._reason = True, ""

    async def ask_once(self) -> None:
        """Ask once, for FIRST_ANSWER seconds at most."""
        with anyio.move_on_after(FIRST_ANSWER):
            await self._ask()

    async def ask_until_granted(self) -> None:
        """Ask with growing pauses until no right lacks, we lead, or the question is refused."""
        questions = 0
        while self._reason:
            questions += 1
            pause = backoff(questions, self._clock.jitter(), first=FIRST, longest=LONGEST)
            await anyio.sleep(pause)
            if self._reason:
                await self._ask()

    async def _ask(self) -> None:
        try:
            lacking = await lacking_rights(
                self._cluster, self._controllers, self._namespaces, self._election
            )
        except _PASSING as error:
            self._take_in(f"the API server cannot be asked: {error}")
        except KubeError as error:
            log.warning("cannot ask which rights there are", error=str(error))
            self._take_in("")
        except Exception as error:
            # It runs beside the work, which must not end by it.
            log.exception("cannot ask which rights there are", error=repr(error))
            self._take_in("")
        else:
            self._take_in_rights(lacking)

    def _take_in_rights(self, lacking: Sequence[LackingRight]) -> None:
        reason = f"lacks {in_one_line(lacking)}" if lacking else ""
        if reason and reason != self._reason:
            remedy = "bind a role that grants them, such as those of the manifests"
            log.warning("rights lack", lacking=in_one_line(lacking), remedy=remedy)
        elif not reason and self._reason.startswith("lacks"):
            log.info("no right lacks any more")
        self._take_in(reason)

    def _take_in(self, reason: str) -> None:
        if not self._leads:
            self._reason = reason


async def tell_unserved(
    cluster: Cluster, controllers: Iterable[Controller[Any]], program: str
) -> None:
    """Log one line if custom resources are not served, with the remedy; raises nothing."""
    unserved: list[str] = []
    for api in (controller.resource.api for controller in controllers if controller.is_custom):
        try:
            await cluster.resource(api.group_version, api.kind)
        except Missing:
            unserved.append(f"{api.plural}.{api.group}")
        except KubeError as error:
            log.warning("cannot ask which kinds are served", error=str(error))
            return
        except Exception as error:
            # It runs beside the work, which must not end by it.
            log.exception("cannot ask which kinds are served", error=repr(error))
            return
    if unserved:
        kinds = ", ".join(unserved)
        log.warning("kinds are not served", kinds=kinds, remedy=f"`{program} install`")
