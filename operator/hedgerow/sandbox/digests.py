"""Digests: the SHA-256 of release downloads, pinned in the repository or stored with a binary."""

from collections.abc import Mapping
from pathlib import Path

from hedgerow.sandbox.files import write
from hedgerow.sandbox.pins import MODULES
from hedgerow.sandbox.published import Asset, is_digest

PINNED = MODULES / "downloads.sha256"

_HEAD = """\
# The SHA-256 of published files, by the binary that is taken from each (etcd's is in an archive).
# What is pinned here wins over what is published later; `task pin` adds what is published now.
"""


def pinned(path: Path = PINNED) -> dict[str, str]:
    """Return the pinned digests by `Asset.key`. Raises ValueError for an invalid line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith("#"):
            digest, _, key = line.partition("  ")
            if not is_digest(digest) or not key or key in found:
                raise ValueError(f"{path}: {line!r} pins nothing")
            found[key] = digest
    return found


def pin(digests: Mapping[str, str], path: Path = PINNED) -> None:
    """Write the pinned digests to the file, sorted."""
    lines = [f"{digest}  {key}\n" for key, digest in sorted(digests.items())]
    write(path, f"{_HEAD}{''.join(lines)}", mode=0o644)


def remembered(entry: Path, binary: str) -> str:
    """Return the digest that a binary was downloaded with, "" if none was."""
    try:
        found = _note(entry, binary).read_text(encoding="utf-8").partition(" ")[0]
    except (OSError, UnicodeDecodeError):
        return ""
    return found if is_digest(found) else ""


def remember(entry: Path, asset: Asset, digest: str) -> None:
    """Store the digest that a binary was downloaded with, and its address."""
    entry.mkdir(exist_ok=True)
    write(_note(entry, asset.binary), f"{digest}  {asset.url}\n", mode=0o644)


def _note(entry: Path, binary: str) -> Path:
    return entry / f"{binary}.sha256"
