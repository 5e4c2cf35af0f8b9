"""Options: how a setting is told, and the values that several of them take."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from hedgerow.core.cron.durations import nanoseconds
from hedgerow.serving.addresses import Address

LOOPBACK = "127.0.0.1"
_SUFFIXES = ("", "Ki", "Mi", "Gi")
_QUANTITY = re.compile(rf"([0-9]+)({'|'.join(_SUFFIXES)})")
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


@dataclass(frozen=True, slots=True)
class Flag:
    """How a setting is told; `takes` is said to whoever told it nonsense."""

    group: str
    name: str
    help: str
    metavar: str = ""
    takes: str = ""
    default: str = ""
    """What the default means, where its value does not tell."""
    environment: str = ""
    """HEDGEROW_ and the name in capitals, where it is empty."""

    @property
    def long(self) -> str:
        """The name in full, where there is a letter for it too."""
        return self.name.split("/")[-1]

    @property
    def variable(self) -> str:
        """The environment variable."""
        return self.environment or f"HEDGEROW_{self.long[2:].replace('-', '_').upper()}"


def _seconds(value: Any) -> Any:
    """Read a duration as Go writes it; a number counts seconds."""
    return nanoseconds(value) / 1e9 if isinstance(value, str) else value


def _parts(value: Any) -> Any:
    """Part names at commas, wherever they were given."""
    given = (value,) if isinstance(value, str) else value
    return tuple(
        part for text in given for part in str(text).split(",") if part or "," not in str(text)
    )


def _bytes(value: Any) -> Any:
    """Read a number of bytes as Kubernetes writes it, with a binary suffix or none."""
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) * 1024 ** _SUFFIXES.index(found[2]) if found else value


def _address(text: str) -> str:
    Address.parse(text)
    return text


def in_pod() -> bool:
    """Return whether this is a pod: it is told where its API server is (client-go, rest.config)."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def bound(port: int) -> str:
    """Return where to listen unasked: in a pod on every address, elsewhere on loopback."""
    return f":{port}" if in_pod() else f"{LOOPBACK}:{port}"


NAMESPACE = "a namespace's name: a-z, 0-9 and '-', 63 characters at most"
DURATION = "a positive duration, such as 15s, 1m30s or 2160h"
BINDS = 'an address to listen on, such as :8080 or 127.0.0.1:8080; "0" turns it off'
Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
Binding = Annotated[str, AfterValidator(_address)]
Label = Annotated[str, StringConstraints(pattern=DNS_LABEL, max_length=63)]
Names = BeforeValidator(_parts)
SIZE = "a quantity of bytes of at least 16Mi, such as 256Mi or 1Gi"
Size = Annotated[int, BeforeValidator(_bytes), Field(ge=16 * 1024**2)]


def readable(seconds: float) -> str:
    """Write a duration as Go would, in its largest whole unit."""
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
