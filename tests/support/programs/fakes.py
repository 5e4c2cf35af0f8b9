"""Fakes: small programs that stand in for Go, the servers and kubectl, and misbehave on request."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

SERVERS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

_SERVER = r"""
import json, os, signal, sys

# Some hundred of these are started: `http.server` would take as long to import as all else does.
here, name = os.path.split(sys.argv[0])
wish = f"{sys.argv[0]}.json"
wishes = json.load(open(wish)) if os.path.exists(wish) else {}
flags = dict(a[2:].partition("=")[::2] for a in sys.argv[1:])
if name == "kubectl":
    sys.exit(int(wishes.get("exit", 0)))
if "version" in flags:
    print(wishes.get("version", "Kubernetes v1.37.2"))
    sys.exit(0)
if wishes.get("deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(f"{here}/starts", "a") as log:
    log.write(f"{name} {os.getpid()}\n")
if open(f"{here}/starts").read().count(f"{name} ") <= wishes.get("taken", 0):
    sys.exit("Error: listen tcp 127.0.0.1:1: bind: address already in use")
if "exit" in wishes:
    print("I0101 some chatter\n" + wishes["exit"], flush=True)
    sys.exit(1)

import socketserver, ssl

NODES = []

class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        while first := self.rfile.readline():
            length = 0
            while (line := self.rfile.readline()).strip():
                field, _, value = line.lower().partition(b":")
                length = int(value) if field == b"content-length" else length
            sent = self.rfile.read(length)
            code, body = self.read() if first.startswith(b"GET ") else self.written(sent)
            content = json.dumps(body).encode()
            head = f"HTTP/1.1 {code} X\r\nContent-Length: {len(content)}\r\n\r\n"
            self.wfile.write(head.encode() + content)

    def read(self):
        bad = wishes.get("unwell") or os.path.exists(f"{here}/{name}.unwell")
        return 500 if bad else 200, {"gitVersion": "v1.37.2", "items": NODES}

    def written(self, sent):
        if "refuse" in wishes:
            return 403, {"message": wishes["refuse"]}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        NODES.append({**json.loads(sent), "status": ready})
        return 201, {"status": {"token": "a-token"}}

if name == "etcd":
    port, pair = flags["listen-client-urls"].rpartition(":")[2], ("cert-file", "key-file")
else:
    port, pair = flags.get("secure-port"), ("tls-cert-file", "tls-private-key-file")
    port = port or flags["server-address"].rpartition(":")[2]
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(*(flags[part] for part in pair))

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that is gone: it resets what it closes

server = Server(("127.0.0.1", int(port)), Answers)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
"""

_GO = r"""
import json, os, pathlib, subprocess, sys, time

here = pathlib.Path(sys.argv[0]).parent
wish = here / "go.json"
wishes = json.loads(wish.read_text()) if wish.exists() else {}
if sys.argv[1] == "version":
    print(f"go version go{wishes.get('version', '1.26.8')} linux/amd64")
    sys.exit(int(wishes.get("broken", 0)))
out, package = sys.argv[sys.argv.index("-o") + 1], sys.argv[-1]
with open(here / "builds", "a") as log:
    kept = ("GOFLAGS", "GOTOOLCHAIN", "CGO_ENABLED", "GOOS", "GOARCH", "GOWORK")
    entry = {"package": package, "argv": sys.argv[1:], "cwd": os.getcwd()}
    log.write(json.dumps({**entry, "env": {k: os.environ.get(k) for k in kept}}) + "\n")
print("go: downloading example.com/thing v1.0.0", file=sys.stderr)
print(package, file=sys.stderr, flush=True)
pathlib.Path(out).write_text("half of it")
if wishes.get("slow"):
    # A compiler of its own, as the real one starts.
    subprocess.run([sys.executable, "-IS", "-c", "import time; time.sleep(600)", str(here)])
for line in range(wishes.get("chatty", 0)):
    print(f"{package}/{line}", file=sys.stderr, flush=True)
    time.sleep(0.01)
if "fail" in wishes:
    sys.exit(wishes["fail"])
pathlib.Path(out).write_text(f"#!/bin/sh\necho {package}\n")
os.chmod(out, 0o755)
"""


class Fakes:
    """A directory of fakes; `wish` says how one of them behaves from its next start on."""

    def __init__(self, directory: Path, names: Sequence[str] = (*SERVERS, "kubectl")) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            self.add(name)

    def add(self, name: str) -> Path:
        """Put one fake there."""
        path = self.directory / name
        source = _GO if name == "go" else _SERVER
        path.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
        path.chmod(0o755)
        return path

    def wish(self, name: str, **wishes: object) -> None:
        """Say how a fake is to behave."""
        (self.directory / f"{name}.json").write_text(json.dumps(wishes), encoding="utf-8")

    def unwell(self, name: str, *, yes: bool = True) -> None:
        """Make a running server answer 500, or well again."""
        mark = self.directory / f"{name}.unwell"
        mark.touch() if yes else mark.unlink(missing_ok=True)

    def starts(self, name: str) -> int:
        """Count how often a server was started."""
        log = self.directory / "starts"
        return log.read_text(encoding="utf-8").count(f"{name} ") if log.exists() else 0

    def builds(self) -> list[dict[str, object]]:
        """Return what `go build` was asked, in order."""
        log = self.directory / "builds"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [json.loads(line) for line in lines]
