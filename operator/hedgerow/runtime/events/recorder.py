"""Recorder: writes Events, each once and create-only."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from hedgerow.kube.errors import KubeError, Stale
from hedgerow.objects import CONTROLLER_LABEL, ObjectRef, digest
from hedgerow.runtime import refusals
from hedgerow.runtime.refusals import Follow, Request
from hedgerow_schemas.base import ApiResource, Object

if TYPE_CHECKING:
    from hedgerow.contract import Notice
    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.clock import Clock

EVENTS = ApiResource("events.k8s.io/v1", "Event", "events")
LONGEST_NOTE = 1024
"""Bytes; the server refuses a longer note."""
LONGEST_PREFIX = 200
REMEMBERED = 4096
NORMAL_BURST = 25
"""Normal Events that may be sent at once; client-go's event spam filter allows as many."""
NORMAL_PER_SECOND = 1.0


class Allowance:
    """How many Normal Events one process may publish: some at once, then one per second.

    A Warning is always published. A Normal Event is only a convenience and costs a write: if many
    come at once, most are left out.
    """

    def __init__(self, clock: Clock, burst: int = NORMAL_BURST) -> None:
        self._clock = clock
        self._burst = float(burst)
        self._left = self._burst
        self._since = clock.monotonic()

    def take(self) -> bool:
        """Return whether one more may be published; if so, count it."""
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._since) * NORMAL_PER_SECOND)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Recorder:
    """Publishes Events; Normal ones only with an allowance.

    An Event's name is a digest of its content: if it is sent again after a crash, it already
    exists.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        field_manager: str,
        allowance: Allowance | None = None,
        reporter: str = CONTROLLER_LABEL,
    ) -> None:
        """Publish under a field manager; `reporter` is what Events name as the controller."""
        self._reporter = reporter
        self._allowance = allowance
        self._cluster = cluster
        self._clock = clock
        self._field_manager = field_manager
        self._told: OrderedDict[str, None] = OrderedDict()

    async def publish(
        self, regarding: ObjectRef, notice: Notice, occurrence: str
    ) -> KubeError | None:
        """Write one Event; return None, or the error if it must be tried again.

        `occurrence` distinguishes Events with the same text.
        """
        name = event_name(regarding, notice, occurrence)
        if name in self._told or not self._is_worth_it(notice):
            return None
        self._told[name] = None
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        body = self._body(regarding, notice, name)
        try:
            await self._cluster.apply(EVENTS, body, manager=self._field_manager)
        except KubeError as error:
            # It already exists: it was sent before a restart.
            if _is_there(error, name) or refusals.rule(Request.EVENT, error).follow is Follow.END:
                return None
            del self._told[name]
            return error
        return None

    def rewind(self) -> None:
        """Forget which Events were published."""
        self._told.clear()

    def is_told(self, name: str) -> bool:
        """Return whether an Event of this name was published, among the last 4096."""
        return name in self._told

    def _is_worth_it(self, notice: Notice) -> bool:
        if notice.type == "Warning":
            return True
        return self._allowance is not None and self._allowance.take()

    def _body(self, regarding: ObjectRef, notice: Notice, name: str) -> Object:
        namespace = regarding.namespace or "default"
        return {
            "apiVersion": EVENTS.group_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": "1"},
            # metav1.MicroTime needs six decimals; otherwise the server answers 500.
            "eventTime": self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": self._reporter,
            "reportingInstance": self._field_manager,
            "action": "Reconcile",
            "reason": notice.reason,
            "type": notice.type,
            "note": notice.note.encode()[:LONGEST_NOTE].decode(errors="ignore"),
            "regarding": {
                "apiVersion": regarding.api.group_version,
                "kind": regarding.api.kind,
                "name": regarding.name,
                "namespace": regarding.namespace,
                "uid": regarding.uid,
            },
        }


def _is_there(error: KubeError, name: str) -> bool:
    """Return whether a conflict is about the Event itself, and not about a quota."""
    details: Object = error.status.get("details") or {}
    return isinstance(error, Stale) and details.get("name") == name


def event_name(regarding: ObjectRef, notice: Notice, occurrence: str) -> str:
    """Return an Event's name, from a digest of its content: the same Event has the same name."""
    told = digest(regarding.uid, notice.reason, notice.note, notice.type, occurrence)
    return f"{regarding.name[:LONGEST_PREFIX].rstrip('-.')}.{told}"
