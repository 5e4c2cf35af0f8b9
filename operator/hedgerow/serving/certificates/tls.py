"""TLS: a context whose certificate changes while connections go on."""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.serving.certificates.issuing import UnusableError

if TYPE_CHECKING:
    from collections.abc import Generator

    from hedgerow.serving.certificates.issuing import Served


_NONE = ""
"""Without a password OpenSSL would ask whoever sits at the terminal, and wait for it."""


class LiveContext:
    """Server contexts for the life of the process; each new connection gets what was last."""

    def __init__(self) -> None:
        self.context = _context()
        self._demanding: list[ssl.SSLContext] = []
        self.served: Served | None = None

    def demanding(self, authorities: str) -> ssl.SSLContext:
        """Return one more context, for clients only that show what one of these has signed.

        Raises UnusableError where there is no certificate in the PEM text.
        """
        context = _context()
        try:
            context.load_verify_locations(cadata=authorities)
        except (ssl.SSLError, ValueError) as error:
            raise UnusableError("it holds no certificate") from error
        context.verify_mode = ssl.CERT_REQUIRED
        self._demanding.append(context)
        if self.served is not None:
            with _file(self.served.chain + self.served.key) as path:
                context.load_cert_chain(path, password=_NONE)
        return context

    def load(self, served: Served) -> None:
        """Serve another certificate from now on.

        Raises UnusableError for a certificate and a key that do not belong together; what was
        served before then stays.
        """
        if served == self.served:
            return
        with _file(served.chain + served.key) as path:
            try:
                # A load that fails leaves a context without a key, so another one tries it.
                _context().load_cert_chain(path, password=_NONE)
            except (ssl.SSLError, ValueError) as error:
                raise UnusableError("the certificate and its key cannot be used") from error
            # Not in a thread: a handshake must not begin between certificate and key.
            for context in (self.context, *self._demanding):
                context.load_cert_chain(path, password=_NONE)
        self.served = served


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@contextmanager
def _file(content: bytes) -> Generator[str]:
    """Return a file to read, the only way into OpenSSL: in memory, else readable to us alone."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("certificate", os.MFD_CLOEXEC)
        with os.fdopen(number, "wb", buffering=0) as memory:
            memory.write(content)
            yield f"/proc/self/fd/{number}"
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "certificate")
        path.touch(0o600)
        path.write_bytes(content)
        yield str(path)
