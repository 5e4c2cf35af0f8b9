"""Settings: everything `hedgerow run` can be told, with its defaults and its limits."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hedgerow.runtime.logs import Format

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
Namespace = Annotated[str, StringConstraints(pattern=DNS_LABEL, max_length=63)]


class Settings(BaseModel):
    """How one operator process runs; an empty tuple of namespaces means all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    controllers: tuple[str, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    instance: Annotated[str, StringConstraints(pattern=rf"^$|{DNS_LABEL}", max_length=20)] = ""
    kubeconfig: str | None = None
    context: str | None = None
    log_format: Format = "auto"
    debug: bool = False
    grace_seconds: float = Field(default=20.0, gt=0)
