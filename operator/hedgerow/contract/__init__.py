"""Contract: a controller's input, its output, and what it declares about itself.

`controller` comes first: what an author declares. `observed` is what `compose` gets besides the
resource, `desired` what it returns, `relations` what it has to do with objects that it does not
own.
"""

from hedgerow.contract.controller import BuiltIn, Controller, ControllerOptions, Lag, Option
from hedgerow.contract.desired import (
    Apply,
    Child,
    Claim,
    Create,
    Desired,
    Keep,
    Notice,
    RemoveFinalizer,
)
from hedgerow.contract.observed import Observed, Word
from hedgerow.contract.relations import (
    Claimable,
    Copies,
    Fields,
    Key,
    Relation,
    Report,
    namesake,
    unreduced,
)

__all__ = [
    "Apply", "BuiltIn", "Child", "Claim", "Claimable", "Controller", "ControllerOptions", "Copies",
    "Create", "Desired", "Fields", "Keep", "Key", "Lag", "Notice", "Observed", "Option", "Relation",
    "RemoveFinalizer", "Report", "Word", "namesake", "unreduced",
]  # fmt: skip
