"""Projects: a server that publishes a release as Kubernetes, etcd and kwok do, and misbehaves."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import socket
import ssl
import tarfile
import threading
from collections import defaultdict
from typing import Self

from hedgerow_testing.sandbox.certificates import KeyPair
from hedgerow_testing.sandbox.pins import PinnedRelease
from hedgerow_testing.sandbox.published import Asset, Origins, published
from hedgerow_testing.sandbox.toolchain import platform_name

BINARIES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "kwok",
)
CUT, SILENT, HELD, WRONG = "cut", "silent", "held", "wrong"


def script(binary: str) -> bytes:
    """Return what stands in for a binary: it runs, and says where it is from."""
    return f"#!/bin/sh\necho {binary} as published\n".encode() + b"#" * 50_000


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def archive(members: dict[str, bytes | None]) -> bytes:
    """Pack files, and where there is no content links, as a .tar.gz."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content or b"")
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/bin/sh"
            tar.addfile(info, io.BytesIO(content or b""))
    return packed.getvalue()


class Projects:
    """The three projects' hosts as three folders of one; downloads from GitHub are redirected.

    `wish` says how the next answers for an address are, one after another: CUT in the middle,
    SILENT from there on, HELD there until `go_on`, WRONG from there on, or a status code; then
    they are right again.
    """

    def __init__(self, release: PinnedRelease, tls: KeyPair | None = None) -> None:
        self.release = release
        self.scheme = "https" if tls else "http"
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.over = threading.Event()
        self._wishes: dict[str, list[str | int]] = defaultdict(list)
        self._server = _Server(self, tls)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        base = f"{self.scheme}://127.0.0.1:{self._server.server_address[1]}"
        self.origins = Origins(f"{base}/dl.k8s.io", f"{base}/github.com", f"{base}/api.github.com")
        self.host = base.partition("//")[2]
        for binary in BINARIES:
            asset = self.asset(binary)
            content = script(binary)
            self.publish(binary, archive({asset.member: content}) if asset.member else content)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    @property
    def platform(self) -> str:
        """What it publishes for: this machine."""
        return platform_name()

    def asset(self, binary: str) -> Asset:
        found = published(self.release.module(binary), binary, self.platform, self.origins)
        assert found
        return found

    def digest(self, binary: str) -> str:
        """Return the SHA-256 of what is published."""
        return sha256(self.files[_path(self.asset(binary).url)])

    def publish(self, binary: str, content: bytes, digest: str = "") -> None:
        """Put a file there, with its digest or another one."""
        asset = self.asset(binary)
        self.files[_path(asset.url)] = content
        told = digest or sha256(content)
        self.files[_path(asset.digests)] = {
            "etcd": f"{'0' * 64}  other.tar.gz\n{told}  {asset.file}\n".encode(),
            "kwok": json.dumps(
                {
                    "tag_name": f"v{asset.version}",
                    "assets": [
                        {"name": "kwokctl-linux-amd64", "digest": f"sha256:{'0' * 64}"},
                        {"name": asset.file, "digest": f"sha256:{told}", "size": len(content)},
                    ],
                }
            ).encode(),
        }.get(asset.binary, told.encode())

    def unpublish(self, url: str) -> None:
        del self.files[_path(url)]

    def wish(self, url: str, *answers: str | int) -> None:
        self._wishes[_path(url)] += answers

    def downloads(self, binary: str) -> int:
        """Count how often a file was asked for."""
        return self.asked.count(_path(self.asset(binary).url))

    def answer(self, path: str, handler: _Handler) -> None:
        """Answer one request."""
        if path.startswith("/github.com/"):
            self.asked.append(path)
            return handler.redirect(f"/objects{path}")
        path = path.removeprefix("/objects")
        if not path.startswith("/github.com/"):
            self.asked.append(path)
        wish = self._wishes[path].pop(0) if self._wishes[path] else ""
        if isinstance(wish, int):
            return handler.content(b"no", status=wish)
        if path not in self.files:
            return handler.content(b"not found", status=404)
        return handler.content(self.files[path], wish)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, projects: Projects, tls: KeyPair | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.projects = projects
        if tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(tls.certificate, tls.key)
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def handle_error(self, *_: object) -> None:
        """A client that is gone is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.server.projects.answer(self.path, self)

    def redirect(self, path: str) -> None:
        self.send_response(302)
        self.send_header(
            "Location", f"{self.server.projects.scheme}://{self.headers['Host']}{path}"
        )
        self.send_header("Content-Length", "0")
        self.end_headers()

    def content(self, content: bytes, wish: str = "", status: int = 200) -> None:
        projects = self.server.projects
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        self.wfile.flush()
        if wish == CUT:
            self.close_connection = True
            return
        if wish == SILENT:
            projects.over.wait()
            self.close_connection = True
            return
        if wish == HELD:
            projects.go_on.wait()
        self.wfile.write(b"!" * (len(content) - half) if wish == WRONG else content[half:])

    def log_message(self, *_: object) -> None:
        """Be quiet."""


def nowhere() -> Origins:
    """Return hosts that refuse every connection."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
    return Origins(base, base, base)


def _path(url: str) -> str:
    return f"/{url.partition('//')[2].partition('/')[2]}"
