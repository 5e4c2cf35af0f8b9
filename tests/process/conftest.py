"""Conftest: the parts of a process are tested on a loop where waiting takes no time."""

from __future__ import annotations

import pytest

from hedgerow_testing.virtual import BACKEND


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND
