"""What `hedgerow run` can be told, and how nonsense is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hedgerow.objects import Installation
from hedgerow.settings import Settings, default, flags, readable
from hedgerow.shard import Shard


class TestDefaults:
    def test_everything_everywhere_with_patience(self):
        made = Settings()

        assert (made.controllers, made.namespaces, made.instance) == ((), (), "")
        assert (made.log_format, made.debug, made.lease_duration) == ("auto", False, 15.0)

    def test_settings_do_not_change(self):
        with pytest.raises(ValidationError, match="frozen"):
            Settings().debug = True  # type: ignore[misc]


class TestValues:
    @pytest.mark.parametrize("name", ["shop", "a", "0", "a-b", "a" * 63])
    def test_a_namespace_is_a_dns_label(self, name):
        assert Settings(namespaces=(name,)).namespaces == (name,)

    @pytest.mark.parametrize("name", ["two", "a", "0a-9", "a" * 20])
    def test_an_instance_fits_into_a_label_value_and_a_field_manager(self, name):
        installation = Installation(Settings(instance=name).instance)

        assert len(installation.label("x" * 42)) <= 63
        assert len(installation.field_manager("x" * 42)) <= 128

    @pytest.mark.parametrize(
        ("field", "value", "says"),
        [
            ("namespaces", ("Shop",), "String should match pattern"),
            ("namespaces", ("a", ""), "String should match pattern"),
            ("namespaces", ("a_b",), "String should match pattern"),
            ("namespaces", ("-a",), "String should match pattern"),
            ("namespaces", ("a\n",), "String should match pattern"),
            ("namespaces", ("a.b",), "String should match pattern"),
            ("namespaces", ("a" * 64,), "at most 63 characters"),
            ("instance", "Two", "String should match pattern"),
            ("instance", "-", "String should match pattern"),
            ("instance", "a" * 21, "at most 20 characters"),
            ("log_format", "xml", "'auto', 'human' or 'json'"),
            ("memory_budget", "15Mi", "greater than or equal to"),
            ("memory_budget", "1.5Gi", "valid integer"),
            ("lease_duration", 0, "greater than 0"),
            ("lease_duration", "soon", "a number is missing"),
            ("lease_duration", float("inf"), "finite number"),
            ("lease_duration", "-15s", "greater than 0"),
            ("system_namespace", "a.b", "String should match pattern"),
            ("metrics_bind_address", "8080", "names no port"),
            ("health_probe_bind_address", ":80800", "is no port"),
            ("webhooks", "maybe", "valid boolean"),
            ("shard", "8/8", "no shard is 8/8: there are 2 to 100, counted from 0"),
            ("shard", "02/8", "'02/8' is no shard, such as 2/8"),
            ("colour", "blue", "Extra inputs are not permitted"),
        ],
    )
    def test_nonsense_is_refused_with_its_field_and_the_reason(self, field, value, says):
        given: dict[str, Any] = {field: value}

        with pytest.raises(ValidationError) as caught:
            Settings(**given)

        (error,) = caught.value.errors()
        assert error["loc"][0] == field
        assert says in error["msg"]

    @pytest.mark.parametrize(
        ("name", "too_short", "shortest"),
        [("lease_duration", "999ms", "1s")],
    )
    def test_what_is_done_again_and_again_is_not_done_without_a_pause(
        self, name, too_short, shortest
    ):
        with pytest.raises(ValidationError, match="greater than or equal to"):
            Settings(**{name: too_short})
        assert getattr(Settings(**{name: shortest}), name) > 0

    def test_names_are_parted_at_commas_wherever_they_come_from(self):
        made = Settings(namespaces="a,b", controllers=("x,y,", "z"))  # type: ignore[arg-type]

        assert (made.namespaces, made.controllers) == (("a", "b"), ("x", "y", "z"))

    @pytest.mark.parametrize(
        ("told", "seconds"), [("15s", 15.0), ("1m30s", 90.0), ("2160h", 7776000.0), (30, 30.0)]
    )
    def test_a_duration_is_written_as_in_go(self, told, seconds):
        assert Settings(lease_duration=told).lease_duration == seconds

    @pytest.mark.parametrize(
        ("told", "size"),
        [("32Mi", 2**25), ("1Gi", 2**30), ("20000Ki", 20000 * 1024), ("20000000", 20_000_000)],
    )
    def test_a_size_is_written_as_in_kubernetes(self, told, size):
        assert Settings(memory_budget=told).memory_budget == size


class TestTogether:
    def test_a_shard_is_elected(self):
        assert Settings(shard="2/8").leader_elect
        assert Settings(shard="2/8").part == Shard(2, 8)
        assert (Settings().part, Settings(shard="").leader_elect) == (None, False)
        with pytest.raises(ValidationError, match="--shard is elected"):
            Settings(shard="2/8", leader_elect=False)

    @pytest.mark.parametrize("instance", ["shard-0-of-2", "a-shard-1-of-2"])
    def test_no_instance_has_the_lease_of_a_shard_of_another_one(self, instance):
        with pytest.raises(ValidationError, match=f"--instance {instance}: its Lease would have"):
            Settings(instance=instance)

    def test_webhooks_are_served_somewhere(self):
        with pytest.raises(ValidationError, match="needs a --webhook-bind-address"):
            Settings(webhooks=True, webhook_bind_address="0")
        assert Settings(webhooks=False, webhook_bind_address="0").webhook_bind_address == "0"


class TestFlags:
    def test_every_setting_has_a_flag_but_the_global_ones_and_those_of_single_controllers(self):
        assert set(Settings.model_fields) - set(flags()) == {"debug", "options", "program"}

    def test_no_two_share_a_name_or_a_variable(self):
        told = [flag for _, flag in flags().values()]

        assert len({flag.long for flag in told}) == len(told)
        assert len({flag.variable() for flag in told}) == len(told)

    @pytest.mark.parametrize(
        ("name", "variable"),
        [
            ("namespaces", "HEDGEROW_NAMESPACE"),
            ("webhooks", "ENABLE_WEBHOOKS"),
            ("metrics_bind_address", "HEDGEROW_METRICS_BIND_ADDRESS"),
        ],
    )
    def test_the_variable_is_made_from_the_name_in_full(self, name, variable):
        assert flags()[name][1].variable() == variable

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("namespaces", "all"),
            ("lease_duration", "15s"),
            ("leader_elect", "off"),
            ("metrics_bind_address", "127.0.0.1:8080 or a free port, in a pod :8080"),
        ],
    )
    def test_a_default_is_told_as_a_user_would_give_it(self, name, shown):
        assert default(name) == shown

    @pytest.mark.parametrize(
        ("seconds", "written"), [(0.5, "0.5s"), (60, "1m"), (90, "90s"), (7200, "2h")]
    )
    def test_a_duration_is_told_in_its_largest_whole_unit(self, seconds, written):
        assert readable(seconds) == written
