"""Run: the operator in the foreground, with what it lacks said before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow import app
from hedgerow.cli.flags import with_settings
from hedgerow.cli.program import registry

if TYPE_CHECKING:
    from hedgerow.settings import Settings


@with_settings
def run(settings: Settings) -> None:
    """Run the operator in the foreground until Ctrl-C or SIGTERM.

    It writes by unforced server-side apply only. What another field manager holds is reported on
    the resource and never overwritten, unless the resource's annotation `hedgerow.dev/claim` asks
    for it by name; no object that it does not own is ever changed. It waits for what is missing:
    custom resources that are not installed yet (`hedgerow install`) and permissions that are not
    granted yet. If no API server answers at the start, it exits with code 4; in a pod it waits,
    unready. One that goes away later is waited for.

    - `hedgerow run` runs the controllers that run by default, in all namespaces
    - `hedgerow run -n shop -n shop-test` looks at two namespaces and no other
    - `hedgerow run --context kind-dev --debug` runs on another cluster, and logs every detail
    - `hedgerow run --metrics-bind-address 0 --health-probe-bind-address 0` opens no port

    Each option is an environment variable too: `HEDGEROW_` and its name, such as
    `HEDGEROW_LEASE_DURATION`; that of `--webhooks` is `ENABLE_WEBHOOKS`. The option wins.
    Options that begin with the name of a controller are for that one.
    """
    app.serve(settings, registry().controllers)
