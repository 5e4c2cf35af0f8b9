"""Audited: an operator in memory that is audited, and the machine that plays it without time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from hedgerow.encoding import encode
from hedgerow_testing.api import Reply
from hedgerow_testing.audit.engine import Phases
from hedgerow_testing.audit.inputs import Inputs, Role
from hedgerow_testing.audit.judging.findings import AuditReport
from hedgerow_testing.audit.judging.quiet import Pace
from hedgerow_testing.audit.judging.recorder import FindingRecorder
from hedgerow_testing.audit.log import Log
from hedgerow_testing.audit.machine import Attendant, AuditEnd
from hedgerow_testing.memory.kind import custom
from hedgerow_testing.memory.kinds import BUILTIN
from hedgerow_testing.memory.requests import MemoryApi, MemoryAudit, RequestPlace
from hedgerow_testing.memory.server import Server
from support.objects import widgets

Object = dict[str, Any]
USER = "operator"
NAMESPACE = "shop"
_ESTABLISHED = [{"type": "Established", "status": "True"}]


class LoggedApi(MemoryApi):
    """One user's requests, each with its answer in the log of the machine."""

    def __init__(self, world: Machine, user: str) -> None:
        super().__init__(world.server, MemoryAudit(), user, lambda: None)
        self._world = world

    def apply(self, manifest: Object, manager: str, **how: Any) -> Reply:
        if manifest["kind"] == "CustomResourceDefinition":
            said = self._world.said_of_definitions
            return Reply(422, {"message": said}) if said else Reply(200, manifest)
        return super().apply(manifest, manager, **how)

    def merge(self, target: Object, patch: Any, manager: str, subresource: str = "") -> Reply:
        if subresource != "scale":
            return super().merge(target, patch, manager, subresource)
        replicas = patch["spec"]["replicas"]

        def act() -> tuple[Object, bool]:
            live = self._model.scale(target, replicas, manager)
            version = {"resourceVersion": live["metadata"]["resourceVersion"]}
            return {"kind": "Scale", "metadata": version, "spec": patch["spec"]}, False

        return self._send("patch", target, act, patch, "scale", {"fieldManager": manager})

    def get(self, target: Object) -> Reply:
        if target["kind"] == "CustomResourceDefinition":
            return Reply(200, {"status": {"conditions": self._world.established}})
        return super().get(target)

    def namespace(self, name: str) -> str:
        self._model.open_namespace(name)
        return name

    def raw(self, _method: str, path: str) -> Reply:
        version = path.removeprefix("/apis/").removeprefix("/api/")
        found = [
            {"kind": kind, "name": api.plural, "namespaced": True}
            for kind in ("Widget", "ConfigMap", "Secret")
            if (api := self._model.api(version, kind))
        ]
        return Reply(200, {"resources": found})

    def _record(
        self, verb: str, place: RequestPlace, reply: Reply, body: Any, query: dict[str, str]
    ) -> None:
        self._world.write(self._user, verb, place, reply, body, query)


class Machine:
    """What `hedgerow_testing.audit.machine.Machine` is, in memory: the operator is a function.

    It is called until it writes nothing more, `limit` times at most. A function without an end
    is never quiet.
    """

    def __init__(
        self,
        directory: Path,
        reconcile: Callable[[LoggedApi, Object], None],
        inputs: Inputs,
    ) -> None:
        self.inputs, self.attendant, self.pace = inputs, Attendant(), Pace()
        self.server = Server((*BUILTIN, custom(widgets.DEFINITION)), (NAMESPACE,))
        self.version, self.began = "1.37.2", 0.0
        self.said_of_definitions = ""
        self.established: list[Object] = _ESTABLISHED
        self.runs, self.printed = False, ""
        self.happened: list[str] = []
        self.reconcile = reconcile
        self._file = directory / "audit.log"
        self._file.touch()
        self._seconds = count()
        self.log = Log(self._file, USER)
        self.api, self._own = LoggedApi(self, "administrator"), LoggedApi(self, USER)

    def write(
        self,
        user: str,
        verb: str,
        place: RequestPlace,
        reply: Reply,
        body: Any,
        query: dict[str, str],
    ) -> None:
        words = "&".join(f"{name}={value}" for name, value in query.items())
        second = next(self._seconds)
        line = {
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": user},
            "requestURI": f"{place.path}?{words}" if words else place.path,
            "objectRef": place.reference,
            "responseStatus": {"code": reply.status},
            "requestObject": body,
            "responseObject": reply.body,
            "requestReceivedTimestamp": f"2026-11-25T{second // 3600 % 24:02}:"
            f"{second // 60 % 60:02}:{second % 60:02}Z",
        }
        with self._file.open("ab") as file:
            file.write(encode(line) + b"\n")

    def setup(self, environment: Any) -> None:
        self.happened.append(f"setup {environment}")

    def start(self) -> None:
        self.runs = True
        self.happened.append("start")

    def tail(self) -> str:
        return "; it printed nothing"

    def errors(self) -> str:
        return self.printed

    def ready(self) -> None:
        self.look()

    def settle(self, _seconds: float = 0.0) -> float | None:
        return 0.0 if any(not self.look() for _ in range(12)) else None

    def until(self, _seconds: float, done: Callable[[], object]) -> bool:
        return any(done() or (self.look() and False) for _ in range(4))

    def look(self) -> int:
        self.attendant.check()
        found = self.server.list("example.org", "Widget", NAMESPACE).items
        for one in found if self.runs else ():
            self.reconcile(self._own, one)
        return self.log.poll()

    def audited(self, environment: Any = None) -> AuditReport:
        """Go through all phases, and return what was found."""
        recorder = FindingRecorder()
        try:
            Phases(self, recorder, environment).run()  # type: ignore[arg-type]
        except AuditEnd as end:
            recorder.partial = str(end)
        return recorder.report(self.inputs.command, self.version)


def inputs(*samples: Object, setup: str = "", roles: Sequence[Role] | None = None) -> Inputs:
    """Return what is audited: the sample of the Widgets, or others."""
    placed = [
        {**one, "metadata": {**one["metadata"], "namespace": NAMESPACE}}
        for one in samples or (widgets.SAMPLE,)
    ]
    return Inputs(
        command=("run",),
        definitions=(widgets.DEFINITION,),
        samples=tuple(placed),
        roles=None if roles is None else tuple(roles),
        setup=setup,
        fields=6,
    )
