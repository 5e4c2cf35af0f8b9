"""Webhooks: their configuration, and where it points."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest

from hedgerow.contract import Controller, Desired
from hedgerow.controllers import memcached
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.controllers.cronjob import controller
from hedgerow.deploy.webhooks import configuration
from hedgerow.serving.admission.configuration import path_of, webhook_names
from hedgerow_schemas.base import ApiResource, CustomResource
from hedgerow_schemas.cronjob import CronJob

ALL = cast(
    "list[Controller[Any]]", [bluegreen.CONTROLLER, controller.CONTROLLER, memcached.CONTROLLER]
)


class Tenant(CustomResource):
    """A cluster-scoped resource."""

    api: ClassVar[ApiResource] = ApiResource("shop.example.com/v1", "Tenant", "tenants", False)


def made(controllers=ALL):
    return configuration(controllers, name="hedgerow-a", namespace="hedgerow-system")


def test_every_webhook_has_a_name_that_is_told():
    names = [hook["name"] for hook in made()["webhooks"]]

    assert set(names) == webhook_names(ALL)


class TestPaths:
    def test_they_are_those_of_kubebuilder(self):
        path = "/validate-batch-tutorial-kubebuilder-io-v1-cronjob"
        assert path_of(CronJob.api) == path


class TestConfiguration:
    def test_all_custom_resources_are_validated(self):
        validating = made()

        assert validating["kind"] == "ValidatingWebhookConfiguration"
        assert [hook["name"] for hook in validating["webhooks"]] == [
            "bluegreen.hedgerow.dev",
            "cronjob.hedgerow.dev",
            "memcached.hedgerow.dev",
        ]
        assert validating["metadata"]["name"] == "hedgerow-a"

    def test_without_custom_resources_there_is_none(self):
        assert made([]) is None

    def test_a_cluster_scoped_resource_is_asked_about_as_such(self):
        (hook,) = made([Controller("tenants", Tenant, lambda *_: Desired(), owns=())])["webhooks"]

        assert hook["rules"][0]["scope"] == "Cluster"

    @pytest.mark.parametrize("hook", made()["webhooks"])
    def test_each_asks_about_the_resource_itself_unless_it_is_going(self, hook):
        (rule,) = hook["rules"]

        assert rule["operations"] == ["CREATE", "UPDATE"]
        assert not any("/" in resource or "*" in resource for resource in rule["resources"])
        assert rule["scope"] == "Namespaced"
        assert hook["matchConditions"][0]["expression"] == (
            "!has(object.metadata.deletionTimestamp)"
        )
        assert hook["failurePolicy"] == "Fail"
        assert hook["sideEffects"] == "None"
        assert hook["admissionReviewVersions"] == ["v1"]
        assert "caBundle" not in hook["clientConfig"]
        assert hook["clientConfig"]["service"]["namespace"] == "hedgerow-system"
