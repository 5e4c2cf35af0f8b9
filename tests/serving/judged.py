"""Judged: an API server that knows the tokens of two users, one of whom may read the metrics."""

from __future__ import annotations

from hedgerow.kube.review_requests import SUBJECT, TOKEN
from support.server.apiserver import Act, ApiServer, Exchange, Reply

USERS = {"good": "prometheus", "poor": "somebody"}
READS = {"path": "/metrics", "verb": "get"}


def judging(latency: float = 0) -> ApiServer:
    server = ApiServer(latency=latency)
    server.answers = {f"review {TOKEN}": _known, f"review {SUBJECT}": _allowed}
    return server


def reviewed(server: ApiServer) -> list[str]:
    """Return the kinds of the reviews so far."""
    return [exchange.api.kind for exchange in server.exchanges]


def _known(exchange: Exchange, _act: Act) -> Reply:
    user = USERS.get(exchange.body["spec"]["token"])
    status = {"authenticated": user is not None, "user": {"username": user or ""}}
    return Reply(201, {"metadata": {}, "status": status})


def _allowed(exchange: Exchange, _act: Act) -> Reply:
    spec = exchange.body["spec"]
    assert spec["nonResourceAttributes"] == READS
    return Reply(201, {"metadata": {}, "status": {"allowed": spec["user"] == "prometheus"}})
