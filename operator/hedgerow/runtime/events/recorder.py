"""Recorder: writes Events, each once and create-only."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from hedgerow.kube.errors import AlreadyExists, Forbidden, KubeError, Stale
from hedgerow.objects import CONTROLLER_LABEL, ObjectRef, digest
from hedgerow.texts import printable
from hedgerow_schemas.base import ApiResource, Object

if TYPE_CHECKING:
    from hedgerow.contract import Notice
    from hedgerow.kube.object_api import ObjectApi
    from hedgerow.runtime.clock import Clock

EVENTS = ApiResource("events.k8s.io/v1", "Event", "events")
LONGEST_NOTE = 1024
"""Bytes; the server refuses a longer note."""
LONGEST_PREFIX = 200
REMEMBERED = 4096
BURST = 25
"""Events that may be sent at once; client-go's event spam filter allows as many."""
PER_SECOND = 1.0
PATIENCE = 10.0
"""Seconds for one Event: the status that it goes with waits for it."""
NAMESPACES = 4096
"""The most namespaces whose shares are remembered; one that is forgotten has its whole share."""


class Allowance:
    """How many Events may be published: some at once, then one per second."""

    def __init__(self, clock: Clock, burst: int = BURST) -> None:
        self._clock = clock
        self._burst = float(burst)
        self._left = self._burst
        self._since: float | None = None

    def take_event(self) -> bool:
        """Return whether one more may be published; if so, count it."""
        now = self._clock.monotonic()
        passed = 0.0 if self._since is None else max(0.0, now - self._since)
        self._left = min(self._burst, self._left + passed * PER_SECOND)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Limits:
    """How many Events one process may publish: Normal ones in all, Warnings in each namespace.

    Those beyond that are left out. Warnings of one namespace take none from the others.
    """

    def __init__(self, clock: Clock, *, normal: int = BURST) -> None:
        """Allow at most so many Normal Events at once; 0 means none at all."""
        self._clock = clock
        self._normal = Allowance(clock, normal)
        self._warnings: OrderedDict[str, Allowance] = OrderedDict()

    def take_normal(self) -> bool:
        """Return whether one more Normal Event may be published; if so, count it."""
        return self._normal.take_event()

    def take_warning(self, namespace: str) -> bool:
        """Return whether one more Warning may be published about this namespace; if so, count it.

        The namespace of a Namespace is itself.
        """
        share = self._warnings.pop(namespace, None) or Allowance(self._clock)
        self._warnings[namespace] = share
        if len(self._warnings) > NAMESPACES:
            self._warnings.popitem(last=False)
        return share.take_event()


class Recorder:
    """Publishes Events, as many as the limits allow.

    An Event's name is a digest of its content: if it is sent again after a crash, it already
    exists.
    """

    def __init__(
        self,
        cluster: ObjectApi,
        clock: Clock,
        field_manager: str,
        limits: Limits | None = None,
        reporter: str = CONTROLLER_LABEL,
    ) -> None:
        """Publish under a field manager; Events name `reporter` as their controller."""
        self._reporter = reporter
        self._limits = limits or Limits(clock, normal=0)
        self._cluster = cluster
        self._clock = clock
        self._field_manager = field_manager
        self._published: OrderedDict[str, None] = OrderedDict()

    async def publish(
        self, regarding: ObjectRef, notice: Notice, occurrence: str
    ) -> KubeError | None:
        """Write one Event, if the limits allow it; return the error if it was refused.

        It is tried once. `occurrence` distinguishes Events with the same text.
        """
        name = event_name(regarding, notice, occurrence)
        if name in self._published:
            return None
        is_warning = notice.type == "Warning"
        limits = self._limits
        if not (limits.take_warning(regarding.home) if is_warning else limits.take_normal()):
            return None
        self._published[name] = None
        if len(self._published) > REMEMBERED:
            self._published.popitem(last=False)
        body = self._body(regarding, notice, name)
        try:
            await self._cluster.apply(EVENTS, body, manager=self._field_manager, timeout=PATIENCE)
        except KubeError as error:
            if _is_done(error, name):
                return None
            self._published.pop(name, None)  # it may have been forgotten meanwhile
            return error
        return None

    def begin_anew(self) -> None:
        """Forget which Events were published."""
        self._published.clear()

    def is_published(self, name: str) -> bool:
        """Return whether an Event of this name was published, among the last 4096."""
        return name in self._published

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
            "note": _note(notice.note),
            "regarding": {
                "apiVersion": regarding.api.group_version,
                "kind": regarding.api.kind,
                "name": regarding.name,
                "namespace": regarding.namespace,
                "uid": regarding.uid,
            },
        }


def _note(text: str) -> str:
    """Return a text as kubectl may show it: unprintable characters escaped, and the end cut."""
    return printable(text, LONGEST_NOTE).encode()[:LONGEST_NOTE].decode(errors="ignore")


def _is_done(error: KubeError, name: str) -> bool:
    """Return whether the Event was sent before a restart, or its namespace is being deleted.

    A conflict may be about a quota as well, and not about the Event.
    """
    is_there = isinstance(error, Stale) and error.is_about(name)
    is_going = isinstance(error, Forbidden) and error.terminating
    return is_there or is_going or isinstance(error, AlreadyExists)


def event_name(regarding: ObjectRef, notice: Notice, occurrence: str) -> str:
    """Return an Event's name, from a digest of its content: the same Event has the same name."""
    content = digest(regarding.uid, notice.reason, notice.note, notice.type, occurrence)
    return f"{regarding.name[:LONGEST_PREFIX].rstrip('-.')}.{content}"
