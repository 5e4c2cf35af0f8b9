"""Website: docs, and the pages that are generated from the code, as a site.

`task docs` builds it. The generator fails for every link, heading or page that is lost.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from support.code.sources import ROOT
from website.stage import stage

OUTPUT = ROOT / "dist/site"
GENERATOR = Path(sys.executable).with_name("zensical")


def build(output: Path) -> None:
    """Build the site into a directory, which is made anew. Raises CalledProcessError."""
    with TemporaryDirectory(prefix="hedgerow-site-") as directory:
        configuration = stage().write(Path(directory))
        subprocess.run(
            [GENERATOR, "build", "--strict", "--config-file", configuration],
            timeout=120,
            check=True,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(configuration.parent / "site", output)


def main() -> None:
    """Build the site and say where it is."""
    arguments = argparse.ArgumentParser(prog="task docs --", description=__doc__)
    arguments.add_argument("--serve", action="store_true", help="serve it at 127.0.0.1 afterwards")
    arguments.add_argument("--port", default="8000", help="where it is served")
    given = arguments.parse_args()
    try:
        build(OUTPUT)
    except subprocess.CalledProcessError:
        sys.exit("task docs: the generator found something wrong; see above")
    print(OUTPUT / "index.html")
    if given.serve:
        server = ("http.server", "--bind", "127.0.0.1", "--directory", str(OUTPUT), given.port)
        os.execv(sys.executable, [sys.executable, "-m", *server])  # noqa: S606 - our own words


if __name__ == "__main__":
    main()
