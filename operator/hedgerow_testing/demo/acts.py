"""Acts: the demo's steps with one BlueGreen; each is typed, waited for and read back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hedgerow.plan.yield_and_claim import YIELD
from hedgerow.workloads import waits_for
from hedgerow_schemas.base import View
from hedgerow_testing.demo import samples
from hedgerow_testing.demo.witness import (
    NAME,
    Witness,
    condition,
    deployment_name,
    holders,
    says,
    selected,
)

if TYPE_CHECKING:
    from hedgerow_schemas.bluegreen import BlueGreen, Phase
    from hedgerow_schemas.builtin import Deployment
    from hedgerow_testing.demo.stage import Stage

MANAGER = "hedgerow-bluegreen"
TAKER = "kubectl-set"
GREEN = deployment_name("Green")
CONFLICTS = 3
"""The exit code of `hedgerow plan` if other field managers hold fields and keep them."""


async def sample(stage: Stage) -> None:
    """Apply the sample: two Deployments and a Service appear."""
    stage.page.act("One BlueGreen gives two Deployments and a Service")
    samples.write(stage.directory)
    await stage.shell.run(f"kubectl apply --server-side -f blue.yaml{stage.flags}")
    witness = Witness(stage)
    bg = await _routed(witness, "Blue")
    await _rolled_out(witness)
    await stage.shell.run(f"kubectl get bluegreens{stage.flags}")
    await stage.shell.run(f"kubectl get services,deployments{stage.flags}")
    live = [(await witness.service()).raw]
    live += [(await witness.deployment(phase)).raw for phase in _PHASES]
    owned = [obj["metadata"]["ownerReferences"][0]["uid"] == bg.metadata.uid for obj in live]
    witness.check("each of them is controlled by the BlueGreen", all(owned), owned)
    ours = [holders(obj, "f:metadata", "f:ownerReferences") for obj in live]
    expected = [[f"{MANAGER} (Apply)"]] * len(live)
    witness.check(f"each was written by {MANAGER}, by server-side apply", ours == expected, ours)


async def flip(stage: Stage) -> None:
    """Change routeTo: the Service follows, the Deployments stay as they are."""
    stage.page.act("routeTo is flipped, and the Service follows")
    witness = Witness(stage)
    before = [await _template(witness, phase) for phase in _PHASES]
    stage.page.say("green.yaml is blue.yaml with `routeTo: Green`.")
    await stage.shell.run(f"kubectl apply --server-side -f green.yaml{stage.flags}")
    await _routed(witness, "Green")
    phase = r"-o jsonpath='{.spec.selector.app\.kubernetes\.io/phase}'"
    await stage.shell.run(f"kubectl get service {NAME}{stage.flags} {phase}")
    after = [await _template(witness, phase) for phase in _PHASES]
    witness.check("the Deployments were left alone", after == before, after)


async def contest(stage: Stage) -> None:
    """Let kubectl take a declared field: it stays taken, and the conflict is reported."""
    stage.page.act("Somebody else takes a field, and nothing is overwritten")
    witness = Witness(stage)
    name, image = samples.container()
    stage.page.say(f"The BlueGreen says `image: {image}` for green. On the Deployment itself:")
    await stage.shell.run(f"kubectl set image deploy/{GREEN} {name}={samples.IMAGE}{stage.flags}")
    bg = await witness.until("the conflict to be reported", witness.bluegreen, _contested, says)
    await _rolled_out(witness)
    await stage.shell.run(f"kubectl get bluegreens{stage.flags}")
    ready = condition(bg, "Ready")
    witness.check(f"Ready is False, {says(bg)}", ready and ready.status == "False", ready)
    _check_report(witness, bg, name)
    events = await witness.until(
        "the Event that reports it", lambda: witness.events("FieldConflict"), bool, "\n".join
    )
    await stage.shell.run(f"kubectl events --for bluegreen/{NAME} --types=Warning{stage.flags}")
    witness.check("a Warning Event says so too", events, events)
    await _check_taken(witness, name)
    printed = await stage.shell.run(f"hedgerow tree bluegreen/{NAME}{stage.flags}")
    path = bg.status.contested[0].path
    # A narrow terminal has a long path on several lines.
    whole = "".join(printed.replace("│", "").split())
    witness.check(f"the tree shows {path} where it is contested", path in whole, printed)


async def follow(stage: Stage) -> None:
    """Plan and apply a change of another field of the container: the taken one stays."""
    stage.page.act("The fields beside it still follow the spec")
    witness = Witness(stage)
    name, _ = samples.container()
    stage.page.say(f"greeting.yaml adds an environment variable to the container {name}.")
    plan = f"hedgerow plan -f greeting.yaml{stage.flags}"
    ended = await stage.shell.attempt(plan)
    is_planned = ended.code == CONFLICTS and samples.VARIABLE["name"] in ended.printed
    witness.check("the plan adds the variable, and leaves the image as it is", is_planned, ended)
    await stage.shell.run(f"kubectl apply --server-side -f greeting.yaml{stage.flags}")

    def greets(deployment: Deployment) -> bool:
        return samples.VARIABLE in View(_container(deployment)).items("env")

    green = await witness.until(
        "the variable on the Deployment",
        lambda: witness.deployment("Green"),
        greets,
        lambda deployment: str(_container(deployment)),
    )
    await stage.shell.run(f"kubectl set env deploy/{GREEN} --list{stage.flags}")
    env = _container(green).get("env")
    witness.check(f"the Deployment has {samples.VARIABLE['name']}", greets(green), env)
    await _check_taken(witness, name)


async def settle(stage: Stage) -> None:
    """Yield the field with the command that `owners` shows: the conflict is over."""
    stage.page.act("One way to settle it: leave the field to its holder")
    witness = Witness(stage)
    name, _ = samples.container()
    printed = await stage.shell.run(f"hedgerow owners deploy/{GREEN} --contested{stage.flags}")
    offered = [line.strip() for line in printed.splitlines() if f"{YIELD}=" in line]
    witness.check("owners shows the command that yields the field", len(offered) == 1, printed)
    stage.page.say("The other command would claim the field. The first one, as it was printed:")
    await stage.shell.run(offered[0])
    bg = await witness.until("end of the conflict", witness.bluegreen, _settled, says)
    await stage.shell.run(f"kubectl get bluegreens{stage.flags}")
    term = bg.metadata.annotations.get(YIELD, "")
    witness.check(f"the BlueGreen is annotated with {YIELD}", GREEN in term, term)
    witness.check(f"nothing is contested; {says(bg)}", not bg.status.contested, bg.status)
    await _check_taken(witness, name)


async def agree(stage: Stage) -> None:
    """Declare the value that the other manager holds: both hold it, and nothing is yielded."""
    stage.page.act("Another way: agree on the value")
    witness = Witness(stage)
    name, _ = samples.container()
    stage.page.say(f"agreed.yaml says `image: {samples.IMAGE}`, which is what the field holds.")
    await stage.shell.run(f"kubectl apply --server-side -f agreed.yaml{stage.flags}")
    stage.page.say("So the field need not be yielded any more:")
    await stage.shell.run(f"kubectl annotate bluegreen {NAME} {YIELD}-{stage.flags}")
    expected = [f"{MANAGER} (Apply)", f"{TAKER} (Update)"]

    async def holding() -> list[str]:
        return holders((await witness.deployment("Green")).raw, *_image_steps(name))

    both = await witness.until(
        "the operator to hold the image as well", holding, lambda names: names == expected, str
    )
    witness.check(f"{' and '.join(both)} share the image", both == expected, both)
    bg = await witness.until("Ready", witness.bluegreen, _settled, says)
    witness.check(f"nothing is contested; {says(bg)}", not bg.status.contested, bg.status)


_PHASES: tuple[Phase, ...] = ("Blue", "Green")


async def _routed(witness: Witness, phase: Phase) -> BlueGreen:
    """Wait until the Service selects a colour, and it is ready."""

    def there(bg: BlueGreen) -> bool:
        return _says(bg, "Ready") and bg.status.route_to == phase

    bg = await witness.until(f"{phase} to be routed to", witness.bluegreen, there, says)
    service = selected(await witness.service())
    witness.check(f"the Service selects {phase}", service == phase, service)
    witness.check(f"status.routeTo is {phase}; {says(bg)}", bg.status.route_to == phase, bg.status)
    return bg


async def _rolled_out(witness: Witness) -> None:
    """Wait until all pods are available, and the BlueGreen says so."""
    for phase in _PHASES:
        read = partial(witness.deployment, phase)
        await witness.until(f"the pods of {phase}", read, lambda d: not waits_for(d), waits_for)
    await witness.until("the BlueGreen to be available", witness.bluegreen, _available, says)


async def _check_taken(witness: Witness, name: str) -> None:
    deployment = await witness.deployment("Green")
    image = _container(deployment).get("image")
    held = holders(deployment.raw, *_image_steps(name))
    witness.check(f"the image still is {image}", image == samples.IMAGE, image)
    witness.check(f"the field is held by {', '.join(held)}", held == [f"{TAKER} (Update)"], held)


def _check_report(witness: Witness, bg: BlueGreen, name: str) -> None:
    [leaf] = bg.status.contested
    path = f'.spec.template.spec.containers[name="{name}"].image'
    expected = (f"Deployment/{GREEN}", path, TAKER, "Update")
    reported = (leaf.object, leaf.path, leaf.manager, leaf.operation)
    witness.check(
        f"status.contested names object, field and holder: {leaf.path} of {leaf.object},"
        f" {leaf.manager} ({leaf.operation})",
        reported == expected,
        reported,
    )


def _settled(bg: BlueGreen) -> bool:
    return _says(bg, "Ready") and not bg.status.contested


def _available(bg: BlueGreen) -> bool:
    return _says(bg, "Available")


def _contested(bg: BlueGreen) -> bool:
    return _says(bg, "Contested")


def _says(bg: BlueGreen, kind: str) -> bool:
    entry = condition(bg, kind)
    return entry is not None and entry.status == "True"


async def _template(witness: Witness, phase: Phase) -> tuple[int, object]:
    deployment = await witness.deployment(phase)
    return deployment.generation, deployment.at("spec", "template")


def _container(deployment: Deployment) -> dict[str, object]:
    containers = deployment.items("spec", "template", "spec", "containers")
    return containers[0] if containers else {}


def _image_steps(name: str) -> tuple[str, ...]:
    path = ("f:spec", "f:template", "f:spec", "f:containers")
    return (*path, f'k:{{"name":"{name}"}}', "f:image")
