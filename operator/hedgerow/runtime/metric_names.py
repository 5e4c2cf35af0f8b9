"""Metric names: those of hedgerow's own metrics in seconds, which no controller's lag may have."""

from __future__ import annotations

from enum import StrEnum


class DurationMetric(StrEnum):
    """A metric in seconds, without the prefix that all metrics have."""

    API_REQUEST = "api_request_duration_seconds"
    LOOP_LAG = "loop_lag_seconds"
    RECONCILE = "reconcile_duration_seconds"
    IN_QUEUE = "workqueue_queue_duration_seconds"
