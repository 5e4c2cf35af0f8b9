"""Forced and unforced: what is foretold of any object is what the model's apply then does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.kube.errors import from_status
from hedgerow.objects import ObjectRef
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.kind import custom
from hedgerow_testing.memory.kinds import BUILTIN
from hedgerow_testing.memory.server import Server
from hedgerow_tools.planning.dry_run import Submission, UserApply
from support.objects.drawn import KINDS, WAYS, WIDGET, must_be_refused, must_equal
from support.server.connected import connected
from tools.planning.asked import asked

Object = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MANAGER = "helm"
OTHERS = st.sampled_from(["argo", "flux", MANAGER])


def written(server: Server, manager: str, way: str, manifest: Object) -> None:
    """Write as somebody does; it may be refused."""
    try:
        if way != "update":
            server.apply(manifest, manager, force=way == "force")
        elif server.get(manifest) is not None:
            patch = {name: value for name, value in manifest.items() if name != "metadata"}
            server.merge(manifest, patch, manager)
    except Refused:
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_foretold_is_what_then_happens(kind: str):
    group_version, drawn = KINDS[kind]

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(OTHERS, WAYS, drawn), max_size=4), drawn, st.booleans())
    def holds(history: Any, wanted: Object, force: bool) -> None:
        server = Server((*BUILTIN, custom(WIDGET)))
        api = server.api(group_version, kind)
        assert api is not None

        def manifest(body: Object) -> Object:
            meta = {**body.get("metadata", {}), "name": "x", "namespace": "default"}
            return {**body, "apiVersion": group_version, "kind": kind, "metadata": meta}

        for manager, way, body in history:
            written(server, manager, way, manifest(body))
        applier = UserApply(MANAGER, takes=force)
        stored = server.get(manifest(wanted))
        ref = ObjectRef(api, "default", "x")
        submission = Submission(ref, manifest(wanted), stored, applier, NOW)
        asking = asked(server)

        async def dry_run() -> Any:
            return await submission.dry_run(connected(asking), absent=False)

        said = anyio.run(dry_run)
        assert [str(one) for one in asking.exchanges if not one.dry_run] == []
        try:
            real, _ = server.apply(manifest(wanted), MANAGER, force=force)
        except Refused as error:
            must_be_refused(said, from_status(error.status))
            return
        must_equal(said, real)

    holds()
