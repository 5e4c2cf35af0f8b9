from __future__ import annotations

import io

import pytest


@pytest.fixture
def shown() -> io.StringIO:
    return io.StringIO()
