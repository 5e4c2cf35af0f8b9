"""Errors: failures of requests, at the API server or on the way to it: one class per situation.

`str(error)` is one line for a person: the request, then what was wrong.
"""
# ruff: noqa: N818  # named for the situation; the module says that they are errors

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.encoding import DEEPEST, decode
from hedgerow.texts import escaped, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow_schemas.base import Object

_HOLDER = re.compile(r'conflict with ("(?:[^"\\]|\\.)*")')
_BAD_BODY = re.compile(r"failed to create typed patch object|failed to convert new object")
_TOO_LARGE = re.compile(r"request is too large|too large: limit is|Too long: may not be more than")
_VALUE = 'nvalid value: "'
_END_OF_VALUE = re.compile(r'(?:[^"\\]|\\.)*+"')
_PATCH = ('"" is invalid: patch: Invalid value: ', "Invalid value: ")
_UNKNOWN = "strict decoding error: "
"""How the server's words about an unknown field of a patch begin; the field follows."""
_LONGEST_VALUE = 100
"""The most characters of a value that the server repeats in its words."""
_SHOWN = 4
_PASSING = {
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}


_NAME: Final = r'"[^"\s]*+"'
_WITHOUT_VALUES: Final = re.compile(
    rf"[a-z]++ {_NAME} not found"
    rf"|secrets {_NAME} is forbidden: User {_NAME} cannot [a-z]++ resource {_NAME} in API"
    rf" group {_NAME}(?: in the namespace {_NAME}| at the cluster scope)"
)
"""The API server's own words about a missing right, object or namespace: they have no value."""
_VALUELESS: Final = frozenset({"FieldValueForbidden", "FieldValueRequired", "FieldValueTooLong"})
"""Reasons of causes that name a field and a rule alone; others quote the refused value."""
LONGEST_AFTER: Final = 60.0
"""Seconds: the longest `Retry-After` that is respected; a load balancer may ask for hours."""


class Cause(Struct, frozen=True):
    """One of `details.causes[]` of a Status; `manager` only for a field manager conflict."""

    field: str
    manager: str
    message: str
    reason: str = ""


class KubeError(Exception):
    """The failure of one request.

    `status` is the server's Status object, or empty. `code` is the HTTP status, 0 without an
    answer. `after` is the number of seconds that the server asked us to wait, at most a minute.
    """

    def __init__(
        self,
        message: str = "",
        *,
        causes: Sequence[Cause] = (),
        status: Object | None = None,
        code: int = 0,
        after: float = 0.0,
        request: str = "",
    ) -> None:
        self.causes = tuple(causes)
        self.status: Object = status or {}
        self.code = code
        self.after = min(after, LONGEST_AFTER)
        self.request = request
        self.message = _in_short(message) or type(self).__name__
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return one line: the request, then what was wrong."""
        return f"{self.request}: {self.message}" if self.request else self.message

    def is_about(self, name: str) -> bool:
        """Return whether the server's error is about the object of this name."""
        details: Object = self.status.get("details") or {}
        return details.get("name") == name

    def withhold(self) -> None:
        """Replace the server's words by its reason and the fields that it names.

        They are an admission webhook's or a validation's, and may repeat values of the object in
        any spelling. A conflict has no such words, nor has a request without an answer.
        """
        if not self.code or isinstance(self, Conflict) or self._has_no_value():
            return
        named = (cause.field for cause in self.causes[:_SHOWN])
        fields = ", ".join(dict.fromkeys(filter(None, named)))
        what = " ".join(filter(None, (f"refused with {self.code}", self.reason)))
        about = f" about {fields}" if fields else ""
        self.message = f"{what}{about}; the reason's text may repeat values, and is not shown"
        self.args = (self.message,)
        self.status = {"reason": self.reason}
        self.causes = tuple(replace(cause, message="") for cause in self.causes)

    def _has_no_value(self) -> bool:
        """Return whether the words about a Secret are the API server's own, which repeat no value.

        Those of webhooks and policies begin otherwise, whatever reason they give.
        """
        text = str(self.status.get("message", ""))
        if _WITHOUT_VALUES.fullmatch(text):
            return True
        is_validation = text.startswith('Secret "') and '" is invalid: ' in text
        return (
            is_validation
            and bool(self.causes)
            and all(cause.reason in _VALUELESS for cause in self.causes)
        )

    @property
    def reason(self) -> str:
        """The Status reason, such as `NotFound`; empty without one."""
        return str(self.status.get("reason", ""))


class ConfigError(KubeError):
    """No usable kubeconfig, context or credentials; the message names the remedy."""


class NoCluster(ConfigError):
    """There is no kubeconfig, and this is no pod."""


class Unreachable(KubeError):
    """No answer; if `sent`, the server may have acted nevertheless."""

    def __init__(self, message: str = "", *, sent: bool, request: str = "") -> None:
        super().__init__(message, request=request)
        self.sent = sent


class Dropped(Unreachable):
    """An open watch was cut or went silent; it can continue from the last version seen."""

    def __init__(self, message: str = "", *, sent: bool = True, request: str = "") -> None:
        super().__init__(message, sent=sent, request=request)


class Silent(Dropped):
    """An open watch was silent for too long.

    Either the connection is half-open, or the store has not reached the watch's version yet. The
    latter happens if the store was restored from an older snapshot: the server silently waits.
    """


class Untrusted(Unreachable):
    """The server's certificate is not signed by the authority that the kubeconfig names."""


class Garbled(KubeError):
    """An answer that the protocol does not allow, such as invalid JSON or a redirect."""


UNDECODABLE: Final = (
    "cannot be decoded: its JSON has bytes that are no UTF-8, a number of thousands of digits, or"
    f" more than {DEEPEST} levels, most likely in metadata.managedFields"
)
"""What is wrong with an object, after its name."""


class Undecodable(Garbled):
    """An answer that is an object, and whose JSON cannot be decoded."""


class Oversized(Garbled):
    """An answer, a page of a list or a line of a watch has more bytes than we ever read."""


class Unauthenticated(KubeError):
    """401: the server does not accept these credentials, or no longer."""


class Forbidden(KubeError):
    """403: we have no right to do this; somebody may grant it later."""

    @property
    def terminating(self) -> bool:
        """Whether the only reason is that the namespace is being deleted."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)


class Missing(KubeError):
    """404: no object, no namespace, or no such kind."""

    @property
    def served(self) -> bool:
        """Whether the server serves the kind, and only the named object is missing."""
        return bool(_mapping(self.status.get("details")).get("name"))


class Conflict(KubeError):
    """409 with causes: other field managers hold fields that we declare with other values."""


class Stale(KubeError):
    """409 without causes, or another uid: our view of the object is out of date."""


class AlreadyExists(KubeError):
    """409: somebody else created the object in the meantime."""


class Gone(KubeError):
    """410: the resource version or continue token is too old; list again."""


class Invalid(KubeError):
    """400, 405, 413, 415, 422, and the 500 that apply answers to a bad body.

    `causes` has the fields if the server names them.
    """


class Throttled(KubeError):
    """429: wait `after` seconds; the request was not carried out."""


class Unavailable(KubeError):
    """500, 502, 503, 504: the server or what it needs failed; it may have acted nevertheless."""

    @property
    def passing(self) -> bool:
        """Whether a retry may help: 502 to 504, and etcd's `ServerTimeout`."""
        return self.code in _PASSING or self.reason == "ServerTimeout"


class NotLeading(KubeError):
    """It was not sent: our Lease has expired, so another process may be leading now."""


_BY_CODE: Mapping[int, type[KubeError]] = {
    HTTPStatus.UNAUTHORIZED: Unauthenticated,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: Missing,
    HTTPStatus.REQUEST_TIMEOUT: Unavailable,
    HTTPStatus.GONE: Gone,
    HTTPStatus.TOO_MANY_REQUESTS: Throttled,
}


def from_answer(code: int, content: bytes, *, after: float = 0.0, request: str = "") -> KubeError:
    """Return the error of an HTTP answer outside 200 to 299; `content` may be anything."""
    try:
        status = _mapping(decode(content))
    except ValueError:
        status = {}
    if status.get("kind") != "Status":
        status = {"message": content[:300].decode("utf-8", "replace")}
    return from_status({**status, "code": code}, after=after, request=request)


def from_status(status: Object, *, after: float = 0.0, request: str = "") -> KubeError:
    """Return the error of a Status object, such as that of a watch's ERROR event."""
    status = {**status, "message": _without_values(str(status.get("message", "")))}
    causes = tuple(_causes(status))
    code = _number(status.get("code"))
    kind = _kind(code, status, causes)
    asked = _number(_mapping(status.get("details")).get("retryAfterSeconds"))
    return kind(
        _message(kind, status, causes) or f"HTTP {code}",
        causes=causes,
        status=status,
        code=code,
        after=after or float(asked),
        request=request,
    )


def discovery_of(kind: str, group_version: str) -> str:
    """Return the name, for errors, of the request that asks whether a kind is served."""
    return f"discovery of {kind} in {group_version}"


def _in_short(text: str, limit: int = 500) -> str:
    """Return a message in one line; of a longer one its beginning and its last words.

    The server says first what was sent, and last what is wrong with it.
    """
    words = " ".join(text.split())
    line = escaped(words if len(words) <= 2 * limit else words[:limit] + words[-limit:])
    return line if len(line) <= limit else f"{line[: limit // 2]} … {line[3 - limit // 2 :]}"


def _without_values(text: str) -> str:
    """Return a server's words without the long values in them, such as a whole patch.

    The server quotes a value as Go does: a manifest would be lines of escaped JSON.
    """
    first, *others = text.split(_VALUE)
    shorter = first + "".join(map(_without_value, others))
    if shorter.lstrip().startswith(_PATCH) and _UNKNOWN in shorter:
        return shorter[shorter.rindex(_UNKNOWN) :]
    return shorter


def _without_value(text: str) -> str:
    end = _END_OF_VALUE.match(text)
    if end is None or end.end() <= _LONGEST_VALUE:
        return _VALUE + text
    return f"{_VALUE[:-1]}…{text[end.end() :]}"


def one_line(text: str, limit: int = 500) -> str:
    """Return `text` in one printable line, with single blanks, cut at `limit` characters."""
    return printable(" ".join(text.split()), limit)


def _kind(code: int, status: Object, causes: Sequence[Cause]) -> type[KubeError]:
    if code == HTTPStatus.CONFLICT:
        return _conflict(status, causes)
    if code == HTTPStatus.UNPROCESSABLE_ENTITY and any(
        cause.field == "metadata.uid" for cause in causes
    ):
        # An apply with a uid found another object of this name: "field is immutable".
        return Stale
    said = str(status.get("message", ""))
    if code == HTTPStatus.INTERNAL_SERVER_ERROR and (
        _BAD_BODY.search(said) or _TOO_LARGE.search(said)
    ):
        return Invalid
    if code < HTTPStatus.BAD_REQUEST:
        return Garbled
    failed = code >= HTTPStatus.INTERNAL_SERVER_ERROR
    return _BY_CODE.get(code, Unavailable if failed else Invalid)


def _conflict(status: Object, causes: Sequence[Cause]) -> type[KubeError]:
    if any(cause.reason == "FieldManagerConflict" for cause in causes):
        return Conflict
    return AlreadyExists if status.get("reason") == "AlreadyExists" else Stale


def _message(kind: type[KubeError], status: Object, causes: Sequence[Cause]) -> str:
    said = str(status.get("message", ""))
    if kind is Conflict:
        return _held(causes)
    if kind is Unauthenticated:
        return f"the server does not accept these credentials ({said or 'Unauthorized'})"
    if kind is Missing and not status.get("details"):
        return f"the server does not serve this ({said.strip()}); is its CRD installed?"
    return said


def _held(causes: Sequence[Cause]) -> str:
    held = [f"{cause.field} is held by {cause.manager}" for cause in causes[:_SHOWN]]
    more = len(causes) - len(held)
    return "; ".join([*held, f"and {more} more"] if more > 0 else held)


def _causes(status: Object) -> Iterable[Cause]:
    listed = _mapping(status.get("details")).get("causes")
    for entry in cast("list[Any]", listed) if isinstance(listed, list) else ():
        cause = _mapping(entry)
        said, reason = str(cause.get("message", "")), str(cause.get("reason", ""))
        message = _without_values(said)
        manager = _manager(message) if reason == "FieldManagerConflict" else ""
        # The patch is no field of the object.
        is_patch = message != said and message.startswith(_UNKNOWN)
        field = "" if is_patch else str(cause.get("field", ""))
        yield Cause(field, manager, message, reason)


def _manager(message: str) -> str:
    """Return the manager's name, which is only in the message's text, as Go's `%q` prints it."""
    holder = _HOLDER.search(message)
    if holder is None:
        return message
    try:
        return str(decode(holder[1].encode()))
    except ValueError:
        return holder[1][1:-1]


def _mapping(value: Any) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}


def _number(value: Any) -> int:
    """Return an integer of 32 bits, as codes and seconds are; 0 for any other value."""
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0
