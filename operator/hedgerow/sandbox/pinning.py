"""Pinning: `task pin`, which adds the currently published digests to the pinned ones."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import httpx

from hedgerow.sandbox import fetch
from hedgerow.sandbox.digests import PINNED, pin, pinned
from hedgerow.sandbox.fetch import FetchError, UnreachableError
from hedgerow.sandbox.pins import releases
from hedgerow.sandbox.published import PLATFORMS, Asset, Origins, published


def assets(origins: Origins) -> Iterator[Asset]:
    """Yield every published file of any pinned release, for any platform."""
    found: dict[str, Asset] = {}
    for release in releases():
        for module in (release.kubernetes, release.etcd, release.kwok):
            for binary in module.packages:
                those = (published(module, binary, name, origins) for name in PLATFORMS)
                found |= {asset.key: asset for asset in those if asset}
    yield from found.values()


async def renew(origins: Origins, path: Path = PINNED) -> list[str]:
    """Pin published digests, drop those that no release needs, and return the problems found.

    A pinned digest is never changed, because published files must not change. Raises
    UnreachableError, without changes, if a host does not answer.
    """
    old, new, amiss = pinned(path), dict[str, str](), list[str]()
    async with fetch.session() as client:
        for asset in assets(origins):
            digest = await _published(client, asset, amiss)
            if digest and old.get(asset.key, digest) != digest:
                amiss.append(f"{asset.key}: {old[asset.key]} is pinned, {digest} is published")
            if held := old.get(asset.key) or digest:
                new[asset.key] = held
    pin(new, path)
    return amiss


async def _published(client: httpx.AsyncClient, asset: Asset, amiss: list[str]) -> str:
    try:
        digest = asset.digest_in(await fetch.text(client, asset.digests))
    except UnreachableError:
        raise
    except FetchError as error:
        amiss.append(f"{asset.key}: {error}")
        return ""
    if not digest:
        amiss.append(f"{asset.key}: {asset.digests} has no SHA-256 of {asset.file}")
    return digest


async def main(origins: Origins, path: Path = PINNED) -> int:
    """Return 1 if something could not be pinned, or is published with another digest; else 0."""
    before = pinned(path)
    try:
        amiss = await renew(origins, path)
    except UnreachableError as error:
        amiss = [f"{error}; nothing is changed"]
    _tell(before, pinned(path))
    sys.stderr.writelines(f"pin: {line}\n" for line in amiss)
    return 1 if amiss else 0


def _tell(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    added, dropped = len(after.keys() - before.keys()), len(before.keys() - after.keys())
    sys.stdout.write(f"{len(after)} digests are pinned, {added} new, {dropped} dropped\n")


if __name__ == "__main__":
    sys.exit(anyio.run(main, Origins()))
