"""Demo: shows the operator at work on a real API server, and reads each result back from it."""

from hedgerow_testing.demo.errors import DemoError

__all__ = ["DemoError"]
