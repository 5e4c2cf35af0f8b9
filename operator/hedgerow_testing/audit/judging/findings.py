"""Findings: the results of an audit as values: rules, findings, verdicts and the whole report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

RuleVerdict = Literal["passed", "failed", "noted", "not checked"]
"""failed and noted have findings: of a rule that matters to the author, and of one that informs."""
RuleGroup = Literal["author", "others", "quiet", "rights"]
VERSION = 2
"""The version of the report as JSON; it changes if a field is renamed, removed or means another."""


@dataclass(frozen=True, slots=True)
class AuditRule:
    """One promise that an audit checks; `name` is what `--fail-on` takes."""

    name: str
    group: RuleGroup
    title: str
    """The promise in a few words, as it reads beside a verdict."""
    meaning: str
    """The effect on people where it is broken."""
    remedy: str
    """How to mend the operator."""
    fails: bool = True
    """Whether findings fail the audit, without `--fail-on`; of what depends on time they do not."""


class AuditedObject(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An object that a finding is about; `generated` is the prefix of a name that is generated."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    generated: str = ""

    def __str__(self) -> str:
        """Return it for people: `Widget shop/demo`."""
        return f"{self.kind} {self.namespace}/{self.name}".replace(" /", " ")

    @property
    def key(self) -> str:
        """The same in every run: without namespace, version, and what was generated of a name."""
        group = self.api_version.rpartition("/")[0]
        kind = f"{self.kind}.{group}" if group else self.kind
        return f"{kind}/{self.generated + '*' if self.generated else self.name}"


class FieldHolder(Struct, frozen=True, omit_defaults=True):
    """A field manager that holds a field, and by which operation: Apply or Update."""

    manager: str
    operation: str
    subresource: str = ""

    def __str__(self) -> str:
        """Return it for people: `manager (Update, status)`."""
        more = f", {self.subresource}" if self.subresource else ""
        return f"{self.manager} ({self.operation}{more})"


class AuditedRequest(Struct, frozen=True, omit_defaults=True):
    """One request of the operator, from the API server's audit log."""

    verb: str
    uri: str
    what: str
    """What kind of write it is: "whole-object update", "forced apply", "JSON patch" and so on."""
    code: int
    at: str = ""
    """When the API server received it, RFC 3339."""
    body: str = ""
    """What was sent, as JSON that may be cut; what Secrets hold is hidden."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a rule is broken, with the evidence.

    `before` and `after` are values as text, those of Secrets hidden; None: there is none. `holder`
    is who has the field afterwards. `causes` are names of `rules.CAUSES`, the one that explains
    most first.
    """

    rule: str
    object: AuditedObject | None
    detail: str
    path: str = ""
    before: str | None = None
    after: str | None = None
    holder: FieldHolder | None = None
    request: AuditedRequest | None = None
    causes: tuple[str, ...] = ()
    count: int = 1
    mark: str = ""
    """The part that distinguishes it from other findings about the same object and path."""

    @property
    def key(self) -> str:
        """The same finding in another run: without times, counts, versions and uids."""
        about = self.object.key if self.object else ""
        return " ".join(filter(None, (self.rule, about, self.path, self.mark)))


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The verdict on one rule; `checked` says how much was looked at, `why` what was not."""

    rule: AuditRule
    verdict: RuleVerdict
    checked: str = ""
    why: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class FieldView:
    """One field of a sample, and who holds it before the operator is started, and then."""

    steps: tuple[str, ...]
    """The elements of its path as they are shown: `.spec`, `.ports`, `[name="a"]`."""
    value: str
    before: tuple[FieldHolder, ...]
    """The holders right after the author applied it, before the operator was started."""
    after: tuple[FieldHolder, ...]
    """The holders once it is quiet; a field that was not there before has none `before`."""

    @property
    def path(self) -> str:
        """The path in one text."""
        return "".join(self.steps)


@dataclass(frozen=True, slots=True)
class SampleView:
    """One sample with its fields, for a picture of who holds what."""

    object: AuditedObject
    fields: tuple[FieldView, ...]


class Figures(Struct, frozen=True, rename="camel"):
    """The measurements of an audit, findings or not."""

    seconds: float = 0.0
    requests: int = 0
    writes: int = 0
    quiet_after: float | None = msgspec.field(default=None, name="quietAfterSeconds")
    """Seconds from the operator's start until it wrote nothing any more; None: never."""
    children: int = 0
    fields_tried: int = 0
    fields_changed: int = 0


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that one audit found; `partial` says why it is not whole, and is empty if it is."""

    command: tuple[str, ...]
    kubernetes: str
    results: tuple[RuleResult, ...]
    findings: tuple[Finding, ...] = ()
    samples: tuple[SampleView, ...] = ()
    partial: str = ""
    notes: tuple[str, ...] = ()
    figures: Figures = field(default_factory=Figures)

    def failing(self, rules: Iterable[str] | None = None) -> tuple[Finding, ...]:
        """Return the findings of these rules; by default of those that fail an audit."""
        chosen = None if rules is None else frozenset(rules)
        failing = {item.rule.name for item in self.results if item.rule.fails}
        wanted = failing if chosen is None else chosen
        return tuple(item for item in self.findings if item.rule in wanted)

    def findings_of(self, rule: str) -> tuple[Finding, ...]:
        """Return the findings of one rule."""
        return self.failing((rule,))

    def result(self, rule: str) -> RuleResult:
        """Return the verdict on a rule. Raises KeyError for an unknown one."""
        return {result.rule.name: result for result in self.results}[rule]
