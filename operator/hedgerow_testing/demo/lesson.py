"""CRD lesson: why definitions are installed by server-side apply, shown with the real kubectl."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from hedgerow.cli.install.definitions import FIELD_MANAGER, plain, render_for, size
from hedgerow_schemas.base import View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.crd import CRD, crd_name
from hedgerow_testing.demo.errors import DemoError
from hedgerow_testing.demo.stage import folder, sandboxed

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object
    from hedgerow_testing.demo.page import Page
    from hedgerow_testing.demo.shell import Ended
    from hedgerow_testing.demo.stage import Stage

LIMIT = 262_144
"""Bytes for all annotations of an object together: TotalAnnotationSizeLimitB of apimachinery."""

REFUSAL = "metadata.annotations: Too long"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NAME = crd_name(BlueGreen)


async def perform(page: Page) -> None:
    """Play the lesson and clean up.

    Raises DemoError if something else happens than it says, SandboxError and KubeError.
    """
    page.title("Why a large CustomResourceDefinition is applied on the server's side")
    async with AsyncExitStack() as ground:
        directory = await ground.enter_async_context(folder(page, keep=False))
        await lesson(await ground.enter_async_context(sandboxed(page, directory, keep=False)))


async def lesson(stage: Stage) -> None:
    """Render the definition twice, apply it in both ways, and read back the results."""
    await _render(stage)
    await _refused(stage)
    await _small(stage)
    await _accepted(stage)
    stage.page.say(
        "`hedgerow install` does the same, so that `kubectl explain bluegreen.spec.blueSpec` tells"
        " what each field means. manifests/chart/definitions holds the plain one."
    )


async def _render(stage: Stage) -> None:
    stage.page.act("One definition, with and without Kubernetes's own descriptions")
    await stage.shell.run("hedgerow install --dry-run > described.yaml")
    first = "sed '1d; /^---$/,$d'"
    await stage.shell.run(f"hedgerow manifests --controllers bluegreen | {first} > plain.yaml")
    [described] = await render_for(stage.cluster, (BlueGreen,))
    stage.page.say(
        f"As JSON, plain is {size(plain(BlueGreen)):,} bytes and described is {size(described):,}:"
        f" each of its PodSpecs is explained field by field. Annotations may take {LIMIT:,} bytes."
    )


async def _refused(stage: Stage) -> None:
    stage.page.act("Client-side apply keeps it once more, in an annotation")
    before = await stage.cluster.read_object(CRD, NAME)
    ended = await _attempt(stage, "kubectl apply -f described.yaml")
    _check(stage, f"refused: {REFUSAL}", ended.code != 0 and REFUSAL in ended.printed, ended)
    after = await stage.cluster.read_object(CRD, NAME)
    outcome = "it is not there" if after is None else "it is as it was"
    _check(stage, f"nothing came of it: {outcome}", _version(before) == _version(after), ended)


async def _accepted(stage: Stage) -> None:
    stage.page.act("Server-side apply keeps who set which field, and no copy")
    flags = f"--server-side --field-manager={FIELD_MANAGER}"
    ended = await _attempt(stage, f"kubectl apply {flags} -f described.yaml")
    _check(stage, "accepted", ended.code == 0, ended)
    live = View(await stage.cluster.read_object(CRD, NAME) or {})
    entries = live.items("metadata", "managedFields")
    ours = [e for e in entries if (e["manager"], e["operation"]) == (FIELD_MANAGER, "Apply")]
    _check(stage, f"{NAME} is there, managed by {FIELD_MANAGER} (Apply)", bool(ours), ended)
    copied = LAST_APPLIED in live.mapping("metadata", "annotations")
    _check(stage, "no annotation holds a copy of it", not copied, ended)


async def _small(stage: Stage) -> None:
    stage.page.act("It is the size: the plain one would pass")
    ended = await _attempt(stage, "kubectl apply -f plain.yaml --dry-run=server")
    _check(stage, "accepted, in a dry run", ended.code == 0, ended)


async def _attempt(stage: Stage, line: str) -> Ended:
    """Run a line that may fail, and show what it printed and how it ended."""
    ended = await stage.shell.attempt(line)
    stage.page.output(f"(exit code {ended.code})")
    return ended


def _check(stage: Stage, text: str, holds: bool, ended: Ended) -> None:
    if not holds:
        stage.page.broken(text)
        said = ended.printed.splitlines()[-1] if ended.printed else "nothing"
        raise DemoError(f"this does not hold: {text}", f"the command said: {said}")
    stage.page.checked(text)


def _version(crd: Object | None) -> str:
    return View(crd or {}).text("metadata", "resourceVersion")
