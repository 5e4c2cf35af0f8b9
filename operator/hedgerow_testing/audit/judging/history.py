"""History: the writes of an audit log in order, each with the object before and after it.

The log holds every write since the server began, with its answer, so the last answer about an
object is the object as it was before the next write.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from hedgerow.fields.paths import is_map
from hedgerow.fields.redaction import HIDDEN, is_secret, worded
from hedgerow.objects import metadata
from hedgerow_testing.audit.judging.findings import AuditedObject, AuditedRequest
from hedgerow_testing.audit_log import VIRTUAL, WRITES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow_schemas.base import Object

_KEPT: Final = 100
"""Writes of one object that are kept, to find the one that took a field."""
_SUCCESS: Final = 300
_LONGEST: Final = 2000
"""Characters of a body that a finding shows."""
_DRAWN: Final = re.compile(
    r"-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[b-df-hj-np-tv-xz]{8,10}"
    r"|(?=[a-z]*\d)(?:[0-9a-f]{6,64}|[b-df-hj-np-tv-xz24-9]{5,10}))$"
)
"""An end of a name that was drawn: a UUID, a digest, or the letters that the API server draws from.

Without a digit it must be too long for a word.
"""
_MADE: Final = re.compile(r"[b-df-hj-np-tv-xz24-9]{5}")
"""What the API server adds to generateName; a StatefulSet gives its Pods both names."""

AuditKey = tuple[str, str, str, str]
"""An object: API group, resource (plural), namespace, name."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request of a log that was answered; `at` is when it was received, in seconds."""

    at: float
    user: str
    verb: str
    uri: str
    code: int
    key: AuditKey
    subresource: str
    body: Any
    version: str = ""
    """The version of the API group that it is addressed to."""
    made_of: str = ""
    """The generateName of the object that it is addressed to, if it has one."""

    @property
    def object(self) -> AuditedObject:
        """The object that it is addressed to, as far as the address tells."""
        return identified({"metadata": {"generateName": self.made_of}}, self.key, self.version)

    @property
    def is_write(self) -> bool:
        """Whether something may have been stored because of it."""
        return self.verb in WRITES and self.key[0] not in VIRTUAL and not self._is_dry_run

    @property
    def is_done(self) -> bool:
        """Whether it succeeded."""
        return 0 < self.code < _SUCCESS

    @property
    def manager(self) -> str:
        """The field manager that it names; the server makes one up if it names none."""
        return self._parameter("fieldManager")

    @property
    def is_forced(self) -> bool:
        """Whether it takes fields by force."""
        return self._parameter("force").lower() in {"true", "1", "t"}

    @property
    def is_apply(self) -> bool:
        """Whether it is a server-side apply: only that has a manager and a whole configuration."""
        named = is_map(self.body) and "apiVersion" in self.body and "kind" in self.body
        return self.verb == "patch" and named and bool(self.manager)

    @property
    def what(self) -> str:
        """What kind of request it is, in words."""
        match self.verb:
            case "update":
                return "whole-object update"
            case "patch" if self.is_apply:
                return "forced apply" if self.is_forced else "apply"
            case "patch":
                return "JSON patch" if isinstance(self.body, list) else "merge patch"
            case _:
                return self.verb

    @property
    def evidence(self) -> AuditedRequest:
        """The request as a finding shows it."""
        at = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        return AuditedRequest(self.verb, self.uri, self.what, self.code, at, self._text)

    @property
    def _text(self) -> str:
        """The body as a finding shows it: without managed fields, and without what Secrets hold."""
        body = self.body
        if body is None or is_secret(self.key[1]):
            return "" if body is None else HIDDEN
        if is_map(body) and "managedFields" in metadata(body):
            left = {k: v for k, v in metadata(body).items() if k != "managedFields"}
            body = {**body, "metadata": left}
        return worded(body, _LONGEST)

    @property
    def _is_dry_run(self) -> bool:
        return bool(self._parameter("dryRun"))

    def _parameter(self, name: str) -> str:
        return "".join(parse_qs(urlsplit(self.uri).query).get(name, [""])[:1])


@dataclass(frozen=True, slots=True)
class LoggedWrite:
    """A write that succeeded, with the object before and after it; None if it is not known."""

    request: LoggedRequest
    before: Object | None
    after: Object | None

    @property
    def is_change(self) -> bool:
        """Whether it changed something: the object has another version than before, or is gone."""
        both = (self.before, self.after)
        before, after = (metadata(obj or {}).get("resourceVersion") for obj in both)
        return after is None or before != after

    @property
    def is_empty(self) -> bool:
        """Whether it was to change something, and did not; a second delete is none."""
        return not self.is_change and self.request.verb != "delete"

    @property
    def object(self) -> AuditedObject:
        """The object that it is about."""
        obj, request = self.after or self.before, self.request
        return identified(obj, request.key, request.version) if obj else request.object


class History:
    """Reads a log from its beginning, and remembers the last writes of each object."""

    def __init__(self) -> None:
        self._states: dict[AuditKey, Object] = {}
        self._writes: dict[AuditKey, deque[LoggedWrite]] = {}
        self._made_of: dict[AuditKey, str] = {}

    def read_entries(
        self, entries: Iterable[Object]
    ) -> Iterator[tuple[LoggedRequest, LoggedWrite | None]]:
        """Yield each request that was answered, and the write that it was if it was one."""
        for entry in entries:
            if entry.get("stage") == "ResponseComplete":
                request = _request(entry, self._made_of)
                yield request, self._written(request, entry.get("responseObject"))

    def writes_of(self, key: AuditKey) -> tuple[LoggedWrite, ...]:
        """Return the last writes of an object, oldest first."""
        return tuple(self._writes.get(key, ()))

    def state(self, key: AuditKey) -> Object | None:
        """Return an object as the last write left it; None if it is gone, or was never written."""
        return self._states.get(key)

    def states(self) -> tuple[Object, ...]:
        """Return all objects that were written and are there, as the last write left them."""
        return tuple(self._states.values())

    def _written(self, request: LoggedRequest, answer: Any) -> LoggedWrite | None:
        if not (request.is_write and request.is_done):
            return None
        body: Object = answer if is_map(answer) else {}
        # A generated name is known from the answer alone.
        group, resource, namespace, name = request.key
        key = (group, resource, namespace, name or str(metadata(body).get("name", "")))
        if resource == "events":
            return LoggedWrite(request, None, body)  # there may be any number of them
        if made_of := metadata(body).get("generateName"):
            self._made_of[key] = str(made_of)
        before = self._states.get(key)
        after = self._after(request, body, before)
        if after is None:
            self._states.pop(key, None)
        else:
            self._states[key] = after
        write = LoggedWrite(request, before, after)
        self._writes.setdefault(key, deque(maxlen=_KEPT)).append(write)
        return write

    def _after(self, request: LoggedRequest, body: Object, before: Object | None) -> Object | None:
        """Return the object after a write; a subresource such as `scale` answers another kind."""
        is_deleted = request.verb == "delete" or bool(_deleted_at(body))
        if (is_deleted and not _is_held(body)) or request.verb == "deletecollection":
            return None  # what removes the last finalizer is answered with the object as it was
        if request.subresource in {"", "status"} and "metadata" in body:
            return body
        if before is None:
            return None
        version = metadata(body).get("resourceVersion") or "?"
        after = {**before, "metadata": {**metadata(before), "resourceVersion": version}}
        if request.subresource == "scale":
            after["spec"] = {**(before.get("spec") or {}), **(body.get("spec") or {})}
        return after


def _is_held(body: Object) -> bool:
    """Return whether an object lives on after it was deleted: a finalizer holds it."""
    return bool(_deleted_at(body) and metadata(body).get("finalizers"))


def _deleted_at(body: Object) -> Any:
    return metadata(body).get("deletionTimestamp")


def _request(entry: Object, made_of: Mapping[AuditKey, str]) -> LoggedRequest:
    ref: Object = entry.get("objectRef") or {}
    key = _key(ref)
    user: Object = entry.get("user") or {}
    status: Object = entry.get("responseStatus") or {}
    return LoggedRequest(
        at=moment(entry.get("requestReceivedTimestamp", "")),
        user=user.get("username", ""),
        verb=entry.get("verb", ""),
        uri=entry.get("requestURI", ""),
        code=status.get("code", 0),
        key=key,
        subresource=ref.get("subresource", ""),
        body=entry.get("requestObject"),
        version=ref.get("apiVersion", ""),
        made_of=made_of.get(key, ""),
    )


def _key(ref: Object) -> AuditKey:
    group, resource, namespace, name = (
        str(ref.get(name, "")) for name in ("apiGroup", "resource", "namespace", "name")
    )
    return group, resource, namespace, name


def moment(text: str) -> float:
    """Return a time of the log in seconds; 0 for a text that is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def identified(obj: Object, key: AuditKey, version: str = "v1") -> AuditedObject:
    """Return which object it is; of one that is not known, what its address tells."""
    group, resource, namespace, name = key
    meta = metadata(obj)
    name = str(meta.get("name") or name)
    return AuditedObject(
        api_version=str(obj.get("apiVersion") or (f"{group}/{version}" if group else version)),
        kind=str(obj.get("kind") or resource),
        name=name,
        namespace=str(meta.get("namespace") or namespace),
        generated=_generated(name, str(meta.get("generateName") or "")),
    )


def _generated(name: str, made_of: str) -> str:
    """Return the part of a name before all that was drawn, as of a Pod and of its ReplicaSet."""
    is_made = made_of and _MADE.fullmatch(name.removeprefix(made_of))
    first = made_of.removesuffix("-") if is_made else name
    while drawn := _DRAWN.search(first):
        first = first[: drawn.start()]
    return f"{first}-" if first != name else ""
