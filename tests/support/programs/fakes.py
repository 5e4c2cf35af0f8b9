"""Fakes: small programs that stand in for Go, the servers and kubectl, and misbehave on request."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

SERVERS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

_SERVER = r"""
import http.server, json, os, pathlib, signal, ssl, sys, threading

here, name = pathlib.Path(sys.argv[0]).parent, pathlib.Path(sys.argv[0]).name
wish = here / f"{name}.json"
wishes = json.loads(wish.read_text()) if wish.exists() else {}
flags = dict(a[2:].partition("=")[::2] for a in sys.argv[1:])
if name == "kubectl":
    sys.exit(int(wishes.get("exit", 0)))
if "version" in flags:
    print(wishes.get("version", "Kubernetes v1.37.2"))
    sys.exit(0)
if wishes.get("deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(here / "starts", "a") as log:
    log.write(f"{name} {os.getpid()}\n")
starts = (here / "starts").read_text().count(f"{name} ")
if starts <= wishes.get("taken", 0):
    sys.exit("Error: listen tcp 127.0.0.1:1: bind: address already in use")
if "exit" in wishes:
    print("I0101 some chatter\n" + wishes["exit"], flush=True)
    sys.exit(1)

NODES = []

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = {"gitVersion": "v1.37.2", "items": NODES}
        bad = wishes.get("unwell") or (here / f"{name}.unwell").exists()
        self.answer(500 if bad else 200, body)

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "refuse" in wishes:
            return self.answer(403, {"message": wishes["refuse"]})
        NODES.append({**sent, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        self.answer(201, {"status": {"token": "a-token"}})

    do_PATCH = do_POST

    def answer(self, code, body):
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass

if name == "etcd":
    port, pair = flags["listen-client-urls"].rpartition(":")[2], ("cert-file", "key-file")
else:
    port, pair = flags.get("secure-port"), ("tls-cert-file", "tls-private-key-file")
    port = port or flags["server-address"].rpartition(":")[2]
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(*(flags[part] for part in pair))

class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # a client that is gone: it resets what it closes

server = Server(("127.0.0.1", int(port)), Answers)
server.daemon_threads = True
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
