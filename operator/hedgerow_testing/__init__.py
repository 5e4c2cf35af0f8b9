"""testing: a test kit for operators, those of other frameworks and languages included.

`hedgerow_testing.plugin` has the fixtures; what is listed in `__all__` is for everybody else.
Everything is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow_testing.api import Api, Reply
    from hedgerow_testing.audit.engine import RunAudit
    from hedgerow_testing.audit_log import AuditLog, must_be_unforced_applies
    from hedgerow_testing.memory.inmemory import InMemory
    from hedgerow_testing.process import OperatorProcess, StartOperator
    from hedgerow_testing.settled import assert_no_writes, assert_settled
    from hedgerow_testing.somebody import SomebodyElse, holders, target
    from hedgerow_testing.virtual import VirtualClock, VirtualLoop
    from hedgerow_testing.waiting import eventually

__all__ = [
    "Api", "AuditLog", "InMemory", "OperatorProcess", "Reply", "RunAudit", "SomebodyElse",
    "StartOperator", "VirtualClock", "VirtualLoop", "assert_no_writes", "assert_settled",
    "eventually", "holders", "must_be_unforced_applies", "target",
]  # fmt: skip

_PLACES = {
    "api": ("Api", "Reply"),
    "audit.engine": ("RunAudit",),
    "audit_log": ("AuditLog", "must_be_unforced_applies"),
    "memory.inmemory": ("InMemory",),
    "process": ("OperatorProcess", "StartOperator"),
    "settled": ("assert_no_writes", "assert_settled"),
    "somebody": ("SomebodyElse", "holders", "target"),
    "virtual": ("VirtualClock", "VirtualLoop"),
    "waiting": ("eventually",),
}
_WHERE = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public name, imported from where it is defined."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
