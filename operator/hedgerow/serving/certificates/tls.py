"""TLS: a context whose certificate can change while connections stay open."""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.files import overwrite
from hedgerow.serving.certificates.material import UnusableError

if TYPE_CHECKING:
    from collections.abc import Generator

    from hedgerow.serving.certificates.material import Served

_NONE = ""
"""An empty password; without any, OpenSSL would ask for one at the terminal and wait."""


class LiveContext:
    """A server context for the life of the process; new connections get the last certificate."""

    def __init__(self) -> None:
        self.context = _context()
        self.served: Served | None = None

    def load(self, served: Served) -> None:
        """Serve this certificate from now on.

        Raises UnusableError if certificate and key do not fit together; then the previous
        certificate stays.
        """
        if served == self.served:
            return
        with _file(served.chain + served.key) as path:
            try:
                # A failed load leaves a context without a key, so try it with another one first.
                _context().load_cert_chain(path, password=_NONE)
            except (ssl.SSLError, ValueError) as error:
                raise UnusableError("the certificate and its key cannot be used") from error
            # Not in a thread: no handshake may start between loading certificate and key.
            self.context.load_cert_chain(path, password=_NONE)
        self.served = served


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Every client has this curve. With ffdhe8192, which is on by default, a handshake takes 0.1 s.
    context.set_ecdh_curve("prime256v1")
    return context


@contextmanager
def _file(content: bytes) -> Generator[str]:
    """Yield the path of a file with this content, as OpenSSL reads only files.

    The file is in memory if the system can do that; otherwise only our user can read it.
    """
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("certificate", os.MFD_CLOEXEC)
        with os.fdopen(number, "wb", buffering=0) as memory:
            memory.write(content)
            yield f"/proc/self/fd/{number}"
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "certificate")
        overwrite(path, content, 0o600)
        yield str(path)
