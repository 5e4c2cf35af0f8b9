"""Website: docs, and the pages that are generated from the code, as a site.

`task docs` builds it, and fails for every link, heading or page that is lost.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

from support.code.sources import ROOT
from website.checks import faults
from website.stage import stage

OUTPUT = ROOT / "dist/site"
GENERATOR = Path(sys.executable).with_name("zensical")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def build(output: Path) -> list[str]:
    """Build the site into a directory, which is made anew; return a sentence for each fault.

    A directory that has something else in it is left as it is.
    """
    if output.exists() and not (output / "search.json").exists() and any(output.iterdir()):
        return [f"{output} is not empty, and no site: nothing was written"]
    with TemporaryDirectory(prefix="hedgerow-site-") as directory:
        configuration = stage().write(Path(directory))
        done = subprocess.run(
            [GENERATOR, "build", "--strict", "--config-file", configuration],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )
        made = configuration.parent / "site"
        if done.returncode or not made.exists():
            return [_COLOUR.sub("", done.stdout).partition("Traceback")[0].strip()]
        found = faults(made)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(made, output)
        return found


def main() -> None:
    """Build the site and say where it is, or what is wrong with it."""
    arguments = argparse.ArgumentParser(prog="task docs --", description=__doc__)
    arguments.add_argument("--output", type=Path, default=OUTPUT, help="the directory it is in")
    arguments.add_argument("--serve", action="store_true", help="serve it at 127.0.0.1 afterwards")
    arguments.add_argument("--port", type=int, default=8000, help="where it is served")
    given = arguments.parse_args()
    if found := build(given.output):
        sys.exit("\n".join(["task docs: something is wrong", *found]))
    print(f"{given.output / 'index.html'}")
    if given.serve:
        serve(given.output, given.port)


def serve(directory: Path, port: int) -> None:
    """Serve a directory on this machine alone, until Ctrl-C."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(directory))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        sys.exit(f"task docs: port {port}: {error.strerror}; --port takes another")
    with server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
