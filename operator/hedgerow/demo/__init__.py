"""Demo: the operator at work on a real API server, told from what is read back from it."""

from hedgerow.demo.errors import DemoError

__all__ = ["DemoError"]
