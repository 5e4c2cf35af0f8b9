"""Contract: a controller's input, its output, and what it declares about itself.

`controller` comes first: what an author declares. `observed` is the second argument of
`compose`, `desired` its result, `relations` the objects that a controller does not own.
"""

from hedgerow.contract.controller import BuiltIn, Controller, ControllerOptions, Lag, Option
from hedgerow.contract.desired import (
    KEEP_ALL,
    Apply,
    Child,
    Contribution,
    Copy,
    Create,
    Desired,
    Keep,
    Notice,
    SourceNotice,
)
from hedgerow.contract.observed import CLOCKS_DIFFER, Answers, Observed, Word
from hedgerow.contract.relations import (
    ContributesTo,
    Fields,
    Key,
    Relation,
    Select,
    namesake,
    unreduced,
)

__all__ = [
    "CLOCKS_DIFFER", "KEEP_ALL", "Answers", "Apply", "BuiltIn", "Child", "ContributesTo",
    "Contribution", "Controller", "ControllerOptions", "Copy", "Create", "Desired", "Fields",
    "Keep", "Key", "Lag", "Notice", "Observed", "Option", "Relation", "Select", "SourceNotice",
    "Word", "namesake", "unreduced",
]  # fmt: skip
