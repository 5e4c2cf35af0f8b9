"""Decision: which field promotes a BlueGreen's switch or rolls it back, and how a switch ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from hedgerow.encoding import encode
from hedgerow.fields.applyconfiguration import extract, versioned
from hedgerow.objects import metadata
from hedgerow.texts import printable
from hedgerow_schemas.base import View
from hedgerow_tools.fields.giving_up import nothing
from hedgerow_tools.fields.transfers import MoveRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.base import Object

_OTHER: Final = {"Blue": "Green", "Green": "Blue"}
_FAILED: Final = frozenset({"CheckFailed", "RolledBack", "Held"})
"""Phases that no waiting ends."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The one field of the spec that is to be set; `notes` say what follows from it."""

    field: Literal["promoted", "routeTo"]
    value: str
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The field as managed fields and the causes of a conflict print it."""
        return f".spec.{self.field}"

    @property
    def line(self) -> str:
        """The field as a line of a manifest; a hash might be a number without its quotes."""
        value = encode(self.value).decode() if self.field == "promoted" else self.value
        return f"{self.field}: {value}"

    def is_set(self, live: Object) -> bool:
        """Return whether the field has that value."""
        return View(live).at("spec", self.field) == self.value


@dataclass(frozen=True, slots=True)
class SwitchEnd:
    """How a switch ended, in words."""

    done: bool
    words: str


def is_observed(live: Object) -> bool:
    """Return whether the status is about the present spec."""
    view = View(live)
    return view.number("status", "observedGeneration") >= view.number("metadata", "generation")


def promotion(live: Object) -> Setting:
    """Return the field that lets a held switch go on, as the status names the template.

    Raises MoveRefused if no switch is held.
    """
    view = View(live)
    phase, coming = _phase(view), _template(view, "switch")
    if phase == "Held" and coming:
        to = view.text("status", "switch", "to")
        return Setting("promoted", coming, (f"{to} may be routed with this template",))
    if view.text("spec", "promoted") in {coming or _template(view, "routed")} - {""}:
        return Setting("promoted", view.text("spec", "promoted"))
    if view.at("spec", "hold") is not True:
        raise MoveRefused(
            f"{_name(live)} holds nothing back: spec.hold is not true, so that a switch goes on by"
            " itself"
        )
    if phase in ("", "Routed"):
        raise MoveRefused(f"{_name(live)}: no switch waits for a promotion")
    raise MoveRefused(
        f"{_name(live)}: the switch is not held yet, it is {phase}: {_ready(live)}; promote it once"
        " its phase is Held"
    )


def rollback(live: Object) -> Setting:
    """Return the field that sends the traffic back: there are two colours, so to the other one.

    While a switch is under way, that is where it came from, otherwise what was routed before.
    Raises MoveRefused if that colour has no pods.
    """
    view = View(live)
    target = _OTHER.get(view.text("spec", "routeTo"), "")
    pods = f"{target.lower()}Spec"
    if not target or view.at("spec", pods) is None:
        raise MoveRefused(f"{_name(live)} has no other colour to go back to: no {pods}")
    return Setting("routeTo", target, tuple(_way_back(view, target)))


def _way_back(view: View, target: str) -> Iterator[str]:
    """Yield whether something may delay the way back to a colour."""
    guards = ["spec.checks"] if view.text("spec", "promotion") == "WhenChecked" else []
    guards += ["spec.hold"] if view.at("spec", "hold") is True else []
    delay = " and ".join(guards)
    if view.text("status", "routeTo") == target:
        yield f"{target} still gets traffic"
    elif view.text("status", "previous", "phase") == target:
        yield f"{target} was routed before"
        if delay:
            yield f"it waits for {delay} only if its pods have changed since then"
    elif delay:
        yield f"{target} is not recorded as routed before, so it may wait for {delay}"


def setting_apply(live: Object, setting: Setting, manager: str) -> Object:
    """Return the apply that sets the field, and keeps what else this manager might hold.

    It is one of ours and should hold nothing else, but anybody may use its name, and an apply gives
    up what it leaves out. The server refuses it if the object has changed since.
    """
    body = versioned(extract(live, manager) or nothing(live), live)
    return {**body, "spec": {**body.get("spec", {}), setting.field: setting.value}}


def outcome(live: Object, setting: Setting) -> SwitchEnd | None:
    """Return how the switch ended after the field was set; None if it goes on."""
    view = View(live)
    if not setting.is_set(live):
        return SwitchEnd(done=False, words=f"somebody else has changed {setting.path} meanwhile")
    if not is_observed(live):
        return None
    phase, selected = _phase(view), view.text("status", "routeTo")
    is_routed = selected == view.text("spec", "routeTo")
    is_ready = _condition(live, "Ready").text("status") == "True"
    if is_routed and (phase == "Routed" or (not phase and is_ready)):
        return SwitchEnd(done=True, words=f"{selected} is routed")
    if phase in _FAILED or _condition(live, "Stalled").text("status") == "True":
        return SwitchEnd(done=False, words=f"{phase or 'Stalled'}: {_ready(live)}")
    return None


def progress(live: Object) -> str:
    """Return where a switch stands, in a line."""
    return ": ".join(filter(None, (_phase(View(live)), _ready(live))))


def _phase(view: View) -> str:
    return printable(view.text("status", "phase"))


def _template(view: View, record: str) -> str:
    return view.text("status", record, "template")


def _name(live: Object) -> str:
    return f"{live['kind']}/{metadata(live)['name']}"


def _ready(live: Object) -> str:
    return printable(_condition(live, "Ready").text("message"))


def _condition(live: Object, kind: str) -> View:
    conditions = map(View, View(live).items("status", "conditions"))
    return next((entry for entry in conditions if entry.text("type") == kind), View({}))
