"""Memory: what is kept of each watched object, so that its next update can be compared with it.

An object is kept packed. All of a Secret's values and all long texts are kept only as digests:
they are compared, but never shown.
"""

from __future__ import annotations

from hashlib import blake2b
from sys import intern
from typing import Any, Final

from hedgerow.encoding import encode
from hedgerow.fields.paths import is_list, is_map
from hedgerow.fields.redaction import concealed
from hedgerow.objects import metadata
from hedgerow.runtime.cache.packing import Packing
from hedgerow_schemas.base import Object, View
from hedgerow_tools.tree.readiness import readiness

MOST: Final = 64 * 1024 * 1024
"""Bytes of compressed objects. Of objects beyond it, only identity and phase are kept."""
LONGEST_PHASE: Final = 128
"""Characters of a phase, which is kept of every object."""
LONG: Final = 256
"""Characters: a longer text is kept as a digest."""
_STATE, _PHASE = "state", "phase"
_UNTOLD: Final = "there"
"""What readiness says of an object whose status says nothing."""


class Memory:
    """Reduces objects to what is kept of them, and reads them again.

    `weight` is the number of bytes that all stored states take; whoever stores objects reports each
    change with `settle`. `unique` is any text that nobody can guess: it keys the digests.
    """

    def __init__(self, unique: str, most: int = MOST) -> None:
        self._key = unique.encode()[:64]
        self.most = most
        self._packing = Packing()
        self.weight = 0
        self.forgotten = 0
        """The number of objects that did not fit, each time that they were reduced."""

    def reduce(self, obj: Object) -> Object:
        """Return an object's identity, phase and compressed state; the latter only if it fits."""
        meta = metadata(obj)
        identity = {
            "name": meta["name"],
            "namespace": intern(str(meta.get("namespace", ""))),
            "uid": meta.get("uid", ""),
            "resourceVersion": meta.get("resourceVersion", ""),
        }
        state = self._packed(obj)
        if self.weight + len(state) > self.most:
            self.forgotten += 1
            state = b""
        return {"metadata": identity, _PHASE: intern(phase_of(obj)[:LONGEST_PHASE]), _STATE: state}

    def settle(self, old: Object | None, new: Object | None) -> None:
        """Count a change of what is stored; None if there is none."""
        self.weight += _size(new) - _size(old)

    def state(self, kept: Object) -> Object | None:
        """Return the object whose state was kept, with digests in it; None if it did not fit."""
        packed: bytes = kept[_STATE]
        if not packed:
            return None
        return self._packing.unpack(packed)

    def _packed(self, obj: Object) -> bytes:
        return self._packing.pack(self._digested(concealed(obj, self._digest)))

    def _digested(self, value: Any) -> Any:
        """Return a value with digests for long texts; list items may be keys, and stay."""
        if is_map(value):
            return {name: self._short(inner) for name, inner in value.items()}
        return [self._digested(item) for item in value] if is_list(value) else value

    def _short(self, value: Any) -> Any:
        is_long = isinstance(value, str) and len(value) > LONG
        return self._digest(value) if is_long else self._digested(value)

    def _digest(self, value: Any) -> str:
        return blake2b(encode(value), digest_size=12, key=self._key).hexdigest()


def phase_of(obj: Object) -> str:
    """Return an object's `status.phase`, or else its readiness; empty if it has neither."""
    view = View(obj)
    phase = view.text("status", "phase")
    if phase:
        return phase
    words = readiness(obj).words
    return "" if words == _UNTOLD else words


def kept_phase(kept: Object) -> str:
    """Return the phase that was kept."""
    return kept[_PHASE]


def _size(kept: Object | None) -> int:
    return len(kept[_STATE]) if kept else 0
