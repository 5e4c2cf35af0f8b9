"""Digests: the SHA-256 of release downloads, stored beside each binary."""

from pathlib import Path

from hedgerow_testing.sandbox.files import write
from hedgerow_testing.sandbox.published import Asset, is_digest


def remembered(entry: Path, binary: str) -> str:
    """Return the digest that a binary was downloaded with, "" if none was."""
    try:
        digest = _note(entry, binary).read_text(encoding="utf-8").partition(" ")[0]
    except (OSError, UnicodeDecodeError):
        return ""
    return digest if is_digest(digest) else ""


def remember(entry: Path, asset: Asset, digest: str) -> None:
    """Store the digest that a binary was downloaded with, and its address."""
    entry.mkdir(exist_ok=True)
    write(_note(entry, asset.binary), f"{digest}  {asset.url}\n", mode=0o644)


def _note(entry: Path, binary: str) -> Path:
    return entry / f"{binary}.sha256"
