"""Registered: the controllers and custom resources that there are, for tests that go over all."""

from __future__ import annotations

from hedgerow.registry import ours

REGISTRY = ours()
CONTROLLERS = {controller.name: controller for controller in REGISTRY.controllers}
RESOURCES = REGISTRY.resources
