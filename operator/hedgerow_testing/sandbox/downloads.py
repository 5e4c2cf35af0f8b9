"""Downloads: release binaries from the projects themselves, used only with the right SHA-256."""

import shutil
import tarfile
import zlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import httpx

from hedgerow.files import opened
from hedgerow_testing.sandbox import fetch
from hedgerow_testing.sandbox.cache import BinaryCache, publish, workplace
from hedgerow_testing.sandbox.fetch import BrokenOffError, FetchError, UnreachableError
from hedgerow_testing.sandbox.locks import LockNotice, Progress
from hedgerow_testing.sandbox.pauses import pauses
from hedgerow_testing.sandbox.pins import Module
from hedgerow_testing.sandbox.published import Asset, Origins, published
from hedgerow_testing.sandbox.toolchain import platform_name

_AT_ONCE = 3
LONGEST = 900.0
"""Seconds for all files together; building would not take longer."""
PAUSE = 1.0
TELL_EVERY = 5.0
_BUILT = "what is lacking is built from source instead"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Downloads:
    """The way to download binaries into a cache."""

    cache: BinaryCache
    progress: Progress
    origins: Origins = field(default_factory=Origins)

    def asset(self, module: Module, binary: str) -> Asset | None:
        """Return where this machine's binary is published, or None."""
        return published(module, binary, platform_name(), self.origins)

    async def fetch(self, wanted: Iterable[tuple[Module, Iterable[str]]]) -> None:
        """Download binaries of modules into the cache, several at once; report failures.

        If another program downloads the same, wait for it.
        """
        assets = [
            (module, asset)
            for module, binaries in wanted
            for binary in binaries
            if (asset := self.asset(module, binary)) is not None
        ]
        if not assets:
            return
        try:
            client = await anyio.to_thread.run_sync(fetch.session)
        except UnreachableError as error:
            self.progress(LockNotice(f"{error}; {_BUILT}"))
            return
        async with client:
            await _Fetching(self, client).all(assets)


class _Fetching:
    """One run of downloads."""

    def __init__(self, downloads: Downloads, client: httpx.AsyncClient) -> None:
        self._downloads, self._client = downloads, client
        self._tell = downloads.progress
        self._some = anyio.Semaphore(_AT_ONCE)
        self._unreachable: dict[str, str] = {}
        self._meter = _Meter(downloads.progress)

    async def all(self, assets: Iterable[tuple[Module, Asset]]) -> None:
        entries: dict[Path, list[tuple[Module, Asset]]] = {}
        for module, asset in assets:
            entry = self._downloads.cache.downloads(module)
            entries.setdefault(entry, []).append((module, asset))
        with anyio.move_on_after(LONGEST) as scope:
            async with anyio.create_task_group() as group:
                for entry, those in entries.items():
                    group.start_soon(self._entry, entry, those)
        if scope.cancelled_caught:
            minutes = f"{LONGEST / 60:.0f} minutes"
            self._tell(LockNotice(f"fetching took {minutes}; {_BUILT}"))
        if self._unreachable:
            hosts, reasons = ", ".join(self._unreachable), set(self._unreachable.values())
            why = "; ".join(sorted(reasons))
            self._tell(LockNotice(f"cannot reach {hosts} ({why}); {_BUILT}"))

    async def _entry(self, entry: Path, assets: Iterable[tuple[Module, Asset]]) -> None:
        async with (
            workplace(entry, self._tell, what=f"fetches {entry.name}") as place,
            anyio.create_task_group() as group,
        ):
            for module, asset in assets:
                # Another program may just have fetched it.
                if self._downloads.cache.find(module, asset.binary) is None:
                    group.start_soon(self._told, asset, entry, place)

    async def _told(self, asset: Asset, entry: Path, place: Path) -> None:
        try:
            await self._asset(asset, entry, place)
        except UnreachableError as error:
            self._unreachable[error.host] = error.reason
        except (FetchError, OSError) as error:
            self._tell(LockNotice(f"{error}; {asset.title} is built from source instead"))

    async def _asset(self, asset: Asset, entry: Path, place: Path) -> None:
        expected = await self._expected(asset)
        file = place / f"{asset.binary}.partial"
        async with self._some:
            came = partial(self._meter.came, asset, expected)
            digest = await self._twice(lambda: fetch.file(self._client, asset.url, file, came))
        if digest != expected:
            raise FetchError(
                f"{asset.url} has the wrong SHA-256: {expected} is published in {asset.digests},"
                f" {digest} came; the file is discarded"
            )
        await anyio.to_thread.run_sync(_keep, asset, file, entry)

    async def _expected(self, asset: Asset) -> str:
        """Return the SHA-256 that a file must have. Raises FetchError."""
        content = await self._twice(lambda: fetch.text(self._client, asset.digests))
        if digest := asset.digest_in(content):
            return digest
        raise FetchError(f"{asset.digests} has no SHA-256 of {asset.file}")

    async def _twice(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of the first attempt, or of a second one if the first is cut off."""
        try:
            return await attempt()
        except BrokenOffError as error:
            self._tell(LockNotice(f"{error}: trying once more"))
        await anyio.sleep(next(pauses(first=PAUSE)))
        return await attempt()


class _Meter:
    """Reports what is downloaded from where, and now and then the total progress."""

    def __init__(self, progress: Progress) -> None:
        self._tell = progress
        self._came: dict[Asset, tuple[int, int]] = {}
        self._began = self._told = anyio.current_time()

    def came(self, asset: Asset, expected: str, length: int, size: int) -> None:
        """Record the progress of one file."""
        self._came[asset] = length, size
        now = anyio.current_time()
        if length == 0:
            much = f" {_megabytes(size)} MB," if size else ""
            trust = f"as {fetch.host(asset.digests)} publishes beside it"
            line = f"fetching {asset.title} from {fetch.host(asset.url)},{much}"
            self._tell(LockNotice(f"{line} sha256 {expected[:12]}… ({trust})"))
        elif now - self._told >= TELL_EVERY:
            self._told = now
            came, whole = (sum(numbers) for numbers in zip(*self._came.values(), strict=True))
            far = f"{_megabytes(came)} of {_megabytes(whole)} MB"
            self._tell(f"fetching: {far}, {now - self._began:.0f} s")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f}"


def _keep(asset: Asset, file: Path, entry: Path) -> None:
    """Put a checked file's binary into the cache."""
    binary = file.with_name(asset.binary)
    if asset.member:
        _extract(asset, file, binary)
    else:
        file.rename(binary)
    binary.chmod(0o755)
    publish(binary, entry)


def _extract(asset: Asset, archive: Path, binary: Path) -> None:
    """Write only the wanted member; names in the archive are never used as file names."""
    try:
        with tarfile.open(archive, "r:gz") as members:
            member = next((m for m in members if m.name == asset.member and m.isreg()), None)
            content = members.extractfile(member) if member else None
            if member is None or content is None or member.size > fetch.LARGEST:
                raise FetchError(f"{asset.url} has no file {asset.member} of a usual size")
            with content, opened(binary, "wb") as target:
                shutil.copyfileobj(content, target)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise FetchError(f"{asset.url} is no archive ({error})") from error
