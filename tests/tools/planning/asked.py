"""Asked: the model of a world as a planner's user asks it, with or without rights."""

from __future__ import annotations

from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS
from hedgerow_schemas.base import ContestedField
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.kinds import ENDPOINT_SLICE, NAMESPACE, POD
from hedgerow_testing.memory.server import Server
from hedgerow_tools.fields.forecast import Forecast
from support.server.apiserver import ApiServer, Reply
from support.server.store import DEFINITION


def asked(server: Server, *lacks: str) -> ApiServer:
    """Return the API server of a model; its namespace `default` allows claims.

    `lacks` are the verbs and plurals that the user has no right to, as in `patch services`.
    """
    server.serve(NAMESPACE, DEFINITION, POD, ENDPOINT_SLICE)
    namespace(server, labels={ALLOW_CLAIMS: "true"})
    made = ApiServer(latency=0, model=server)
    made.denied = set(lacks)
    return made


def namespace(server: Server, **meta: object) -> None:
    """Have the namespace `default` as it is given."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", **meta}}
    server.put(body)


def invalid(words: str, **cause: str) -> Reply:
    """Refuse an object for its content, at a field if there is a cause."""
    return Reply(422, Refused(422, "Invalid", words, [dict(cause)] if cause else []).status)


def conflict(path: str, manager: str) -> Reply:
    """Refuse an apply for a field that another manager holds."""
    message = f'conflict with "{manager}"'
    cause = {"reason": "FieldManagerConflict", "field": path, "message": message}
    return Reply(409, Refused(409, "Conflict", "no", [cause]).status)


def contested(forecast: Forecast) -> list[ContestedField]:
    """Return the fields that a forecast tells as contested."""
    return [dispute.field for dispute in forecast.contested]
