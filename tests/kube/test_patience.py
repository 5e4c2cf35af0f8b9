"""Patience: the seconds for a request, by its kind, or as the one who connects says."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hedgerow.kube.cluster import Cluster
from hedgerow.kube.errors import Unreachable
from hedgerow.kube.wire import Request
from hedgerow_schemas.base import ApiResource

pytestmark = pytest.mark.anyio
API = ApiResource("v1", "ConfigMap", "configmaps")
BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}}


class Silent:
    """A session that never answers, and remembers how long it was given."""

    def __init__(self) -> None:
        self.given: list[float] = []

    async def send(self, _request: object, *, seconds: float) -> object:
        self.given.append(seconds)
        raise Unreachable("no answer", sent=True)


async def given(patience: float) -> list[float]:
    session = Silent()
    cluster = Cluster(cast("Any", session), patience=patience)
    for asked in (
        cluster.read_object(API, "x", "y"),
        cluster.apply(API, BODY, manager="m"),
        cluster.dry_run_create(API, "y", BODY, manager="m"),
        cluster.send(Request("GET", "/version")),
        cluster.list(API, "y"),
        cluster.get("/version"),
        cluster.get("/api/v1", timeout=7),
    ):
        with pytest.raises(Unreachable):
            await asked
    return session.given


@pytest.mark.parametrize(
    ("patience", "seconds"), [(0, [10, 35, 35, 35, 60, 30, 7]), (45, [45, 45, 45, 45, 45, 45, 7])]
)
async def test_it_is_that_of_the_request_unless_the_command_names_another(
    patience: float, seconds: list[float]
) -> None:
    assert await given(patience) == seconds
