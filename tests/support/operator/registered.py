"""Registered: the controllers and custom resources that there are, for tests that go over all."""

from __future__ import annotations

from hedgerow.registry import ours

ALL = ours()
"""The opt-in ones as well."""
REGISTRY = ALL.limited()
CONTROLLERS = {controller.name: controller for controller in REGISTRY.controllers}
RESOURCES = REGISTRY.resources
