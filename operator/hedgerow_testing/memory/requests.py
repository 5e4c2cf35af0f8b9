"""Requests: the requests to the cluster in memory, recorded as an API server's audit log would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from hedgerow.kube.errors import KubeError
from hedgerow_testing.api import Reply
from hedgerow_testing.audit_log import AuditEntry, Requests
from hedgerow_testing.memory.answers import Refused, missing
from hedgerow_testing.memory.watched import Watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow_schemas.base import ApiResource
    from hedgerow_testing.memory.cluster import Sent
    from hedgerow_testing.memory.schema import Object
    from hedgerow_testing.memory.server import Server

_VERBS = {"apply": "patch", "read": "get"}
"""The API server's names for the verbs of `Sent`."""
_CREATED, _OK, _UNANSWERED = 201, 200, 0


class MemoryAudit(Requests):
    """Every request to the cluster in memory, of the operator and of everybody else."""

    def __init__(self) -> None:
        self._entries: list[AuditEntry] = []

    def mark(self) -> int:
        """Return the number of requests so far."""
        return len(self._entries)

    def entries(self, mark: int = 0) -> list[AuditEntry]:
        """Return the requests after so many."""
        return self._entries[mark:]

    def add(
        self, user: str, verb: str, place: RequestPlace, code: int, body: Any = None, **query: str
    ) -> None:
        """Record a request that has been answered."""
        entry: AuditEntry = {
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": user},
            "userAgent": user,
            "requestURI": place.path + (f"?{urlencode(query)}" if query else ""),
            "objectRef": place.reference,
            "responseStatus": {"code": code},
        }
        if body is not None:
            entry["requestObject"] = body
        self._entries.append(entry)


class RequestPlace:
    """Where a request goes to."""

    def __init__(
        self, api: ApiResource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> None:
        root = f"/apis/{api.group_version}" if api.group else f"/api/{api.group_version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        parts = [root + scope, api.plural, name, subresource]
        self.path = "/".join(part for part in parts if part)
        named = {"apiGroup": api.group, "namespace": namespace, "name": name}
        named |= {"subresource": subresource}
        self.reference: AuditEntry = {"resource": api.plural, "apiVersion": api.version} | {
            key: value for key, value in named.items() if value
        }


class Recorded(Watched):
    """The cluster as an operator's client sees it; its requests are recorded under a user."""

    def __init__(self, model: Server, audit_log: MemoryAudit, user: str) -> None:
        super().__init__(model)
        self._audit, self._user = audit_log, user

    async def _ask(self, sent: Sent, act: Callable[[], Any]) -> Any:
        code = _UNANSWERED
        try:
            answer = await super()._ask(sent, act)
            is_new = sent.verb == "apply" and answer[1]
            code = _CREATED if is_new else _OK
        except KubeError as error:
            code = error.code
            raise
        else:
            return answer
        finally:
            self._record(sent, code)

    def _record(self, sent: Sent, code: int) -> None:
        query: dict[str, str] = {}
        if sent.manager:
            query["fieldManager"] = sent.manager
        query |= {"force": "true"} if sent.force else {}
        query |= {"dryRun": "All"} if sent.dry_run else {}
        verb = _VERBS.get(sent.verb, sent.verb)
        body: Any = sent.body
        if verb == "delete":
            body = {"preconditions": dict(sent.body), "propagationPolicy": "Background"}
        place = RequestPlace(sent.api, sent.namespace, sent.name, sent.subresource)
        self._audit.add(self._user, verb, place, code, body or None, **query)


class MemoryApi:
    """One user's plain requests to the cluster in memory, with the methods of `Api`."""

    def __init__(
        self, model: Server, audit_log: MemoryAudit, user: str, on_change: Callable[[], None]
    ) -> None:
        self._model, self._audit, self._user, self._on_change = model, audit_log, user, on_change

    def apply(
        self,
        manifest: Object,
        manager: str,
        *,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Reply:
        """Apply a manifest (server-side apply)."""
        query = {"fieldManager": manager, **({"force": "true"} if force else {})}

        def act() -> tuple[Object, bool]:
            return self._model.apply(
                manifest, manager, subresource=subresource, force=force, dry_run=dry_run
            )

        return self._send("patch", manifest, act, manifest, subresource, query)

    def merge(self, target: Object, patch: Any, manager: str, subresource: str = "") -> Reply:
        """Send a JSON merge patch."""

        def act() -> tuple[Object, bool]:
            return self._model.merge(target, patch, manager, subresource), False

        return self._send("patch", target, act, patch, subresource, {"fieldManager": manager})

    def put(self, body: Object, manager: str, subresource: str = "") -> Reply:
        """Replace an object."""

        def act() -> tuple[Object, bool]:
            return self._model.update(body, manager, subresource), False

        return self._send("update", body, act, body, subresource, {"fieldManager": manager})

    def create(self, body: Object, manager: str) -> Reply:
        """Create an object by POST."""

        def act() -> tuple[Object, bool]:
            return self._model.create(body, manager), True

        return self._send("create", body, act, body, "", {"fieldManager": manager})

    def get(self, target: Object) -> Reply:
        """Read an object."""

        def act() -> tuple[Object, bool]:
            live = self._model.get(target)
            if live is None:
                raise missing(target["metadata"]["name"])
            return live, False

        return self._send("get", target, act, None, "", {})

    def delete(self, target: Object, **preconditions: str) -> Reply:
        """Delete an object, if the preconditions `uid` and `resourceVersion` hold."""
        options = {"preconditions": preconditions, "propagationPolicy": "Background"}
        uid, version = preconditions.get("uid", ""), preconditions.get("resourceVersion", "")

        def act() -> tuple[Object, bool]:
            self._model.delete(target, uid=uid, version=version)
            return {"kind": "Status", "status": "Success"}, False

        return self._send("delete", target, act, options, "", {})

    def _send(
        self,
        verb: str,
        target: Object,
        act: Callable[[], tuple[Object, bool]],
        body: Any,
        subresource: str,
        query: dict[str, str],
    ) -> Reply:
        try:
            answer, created = act()
            reply = Reply(_CREATED if created else _OK, answer)
        except Refused as refused:
            reply = Reply(refused.code, refused.status)
        metadata = target["metadata"]
        api = self._model.api(target["apiVersion"], target["kind"])
        if api is not None:
            place = RequestPlace(api, metadata.get("namespace", ""), metadata["name"], subresource)
            self._record(verb, place, reply, body, query)
        self._on_change()
        return reply

    def _record(
        self, verb: str, place: RequestPlace, reply: Reply, body: Any, query: dict[str, str]
    ) -> None:
        self._audit.add(self._user, verb, place, reply.status, body, **query)
