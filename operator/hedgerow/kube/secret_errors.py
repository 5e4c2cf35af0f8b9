"""Secret errors: errors of writes to Secrets, without the words of the API server."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from hedgerow.fields.redaction import is_secret
from hedgerow.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Generator

    from hedgerow_schemas.base import ApiResource


@contextmanager
def withholding(api: ApiResource) -> Generator[None]:
    """Keep the values of a Secret out of an error about a write to it.

    An admission webhook gets the whole object, with former values and those of other field
    managers, whatever was sent; it may repeat them in its message.
    """
    try:
        yield
    except KubeError as error:
        if is_secret(api.kind):
            error.withhold()
        raise
