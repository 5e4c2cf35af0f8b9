"""What objects lose by a later schema: each way to ask more, and none where nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.cli.install.losses import NAMED, TOLD, losses
from hedgerow.cli.install.narrowing import limits
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.kind import ServedKind
from support.objects.narrowed import (
    GROUP,
    HARMLESS,
    KEPT,
    WAYS,
    Narrowed,
    definition,
    of,
    root,
    text,
)
from support.server.apiserver import ApiServer
from support.server.connected import connected

pytestmark = pytest.mark.anyio


def broken(before: Any, after: Any, value: Any) -> list[str]:
    obj = {"metadata": {"name": "a"}, "spec": {"x": value}, "status": {"any": 1}}
    return [what for one in limits(root(before), root(after)) for what in one.broken_by(obj)]


def laid_out(definition: Any, *objects: Any) -> ApiServer:
    """Return a server with objects of the definition's stored version."""
    server, names = ApiServer(latency=0), definition["spec"]["names"]
    version = f"{GROUP}/{definition['spec']['versions'][0]['name']}"
    server.store.serve(ServedKind(ApiResource(version, names["kind"], names["plural"]), {}))
    for one in objects:
        server.store.put({"apiVersion": version, "kind": names["kind"], **one})
    return server


def thing(name: str, x: Any, **meta: Any) -> Any:
    return {"metadata": {"name": name, "namespace": "shop", **meta}, "spec": {"x": x}}


class TestLimits:
    @pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
    def test_what_an_object_loses_or_breaks_is_told_with_its_path(self, way: Narrowed):
        assert broken(way.before, way.after, way.taken) == [way.what]

    @pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
    def test_what_fits_passes_and_so_does_an_object_without_the_field(self, way: Narrowed):
        obj = {"metadata": {"name": "a"}, "spec": {}}
        asked = limits(root(way.before), root(way.after))

        assert asked
        assert [what for one in asked for what in one.broken_by(obj)] == []
        for value in way.passes:
            assert broken(way.before, way.after, value) == []

    @pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
    def test_what_the_present_schema_asks_already_is_no_news(self, way: Narrowed):
        assert broken(way.after, way.after, way.taken) == []

    @pytest.mark.parametrize(
        ("before", "after", "value"), [one[1:] for one in HARMLESS], ids=[o[0] for o in HARMLESS]
    )
    def test_what_takes_nothing_is_not_told(self, before: Any, after: Any, value: Any):
        assert broken(before, after, value) == []

    def test_what_is_asked_of_nothing_more_takes_no_look_at_the_objects(self):
        for name in ("a field is added", "a description changes", "nothing changes"):
            [(_, before, after, _)] = [one for one in HARMLESS if one[0] == name]
            assert limits(root(before), root(after)) == []

    def test_the_metadata_is_limited_in_its_name_and_loses_nothing(self):
        named = {"properties": {"name": {"type": "string", "maxLength": 3}}}
        schema = {"type": "object", "properties": {"metadata": {"type": "object", **named}}}
        obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "four", "labels": {"a": ""}}}

        found = [w for one in limits(KEPT, schema) for w in one.broken_by(obj)]
        assert found == [".metadata.name: must have at most 3 characters"]

    def test_a_hostile_text_does_not_hold_up_a_pattern(self):
        """An engine that goes back would need longer than anybody lives."""
        hostile = text(pattern="^(a+)+$")

        assert broken(text(), hostile, "a" * 50_000 + "b")


class TestLosses:
    before, after = definition(of(a=text(), b=text())), definition(of(a=text()))

    async def test_the_first_objects_are_named_and_all_are_counted(self):
        server = laid_out(
            self.before, *(thing(f"t{number}", {"b": "1"}) for number in range(9)), thing("x", {})
        )

        [loss] = await losses(connected(server), self.before, self.after)
        assert (loss.what, loss.count) == (".spec.x.b: would be lost", 9)
        assert loss.objects == tuple(f"shop/t{number}" for number in range(NAMED))
        [listed] = server.exchanges
        assert listed.request.path == f"/apis/{GROUP}/v1/things"

    async def test_without_a_difference_nothing_is_listed(self):
        server = laid_out(self.before, thing("a", {"b": "1"}))

        assert await losses(connected(server), self.before, self.before) == ()
        assert await losses(connected(server), self.after, self.before) == ()
        assert server.exchanges == []

    async def test_they_have_a_bound_however_many_keys_somebody_made_up(self):
        before, after = definition({"type": "object", **KEPT}), definition(of(a=text()))
        server = laid_out(
            before, *(thing(f"t{n}", {f"k{n}-{key}": "" for key in range(1000)}) for n in range(3))
        )

        assert len(await losses(connected(server), before, after)) == TOLD

    async def test_a_key_is_cut(self):
        before, after = definition({"type": "object", **KEPT}), definition(of(a=text()))
        server = laid_out(before, thing("t", {"k" * 10_000: ""}))

        [loss] = await losses(connected(server), before, after)
        assert len(loss.what) < 200

    async def test_managed_fields_of_a_version_that_goes_are_told(self):
        before = definition(of(a=text()), "v1", "v1beta1")
        entries = [{"apiVersion": f"{GROUP}/v1beta1"}, {"apiVersion": f"{GROUP}/v1"}]
        old = thing("old", {"a": "1"}, managedFields=entries)
        server = laid_out(before, old, thing("new", {"a": "1"}, managedFields=entries[1:]))

        [loss] = await losses(connected(server), before, self.after)
        assert loss.objects == ("shop/old",)
        assert loss.what == f".metadata.managedFields of {GROUP}/v1beta1: no apply would pass"

    async def test_the_stored_version_is_compared_with_another_that_takes_its_place(self):
        before = definition(of(a=text(), b=text()), "v1")
        server = laid_out(before, thing("t", {"b": "1"}))

        [loss] = await losses(connected(server), before, definition(of(a=text()), "v2"))
        assert loss.what == ".spec.x.b: would be lost"
