"""Checks: the Jobs that try a colour before it is routed, and their verdicts.

A Job is named after a digest of all that its verdict depends on: the template of the colour, and
the check itself. So a verdict never counts for another revision: that has another Job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow import Create, Job, Keep, Pod, View, digest
from hedgerow_schemas.bluegreen import CheckStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow import Object, Observed
    from hedgerow.controllers.bluegreen.switch import CheckVerdict
    from hedgerow_schemas.bluegreen import BlueGreen, Check, Phase

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "app.demo.kakao.com"
NAMED_BY: Final = "app.kubernetes.io/name"
"""The label by which the Services select, so that no check's pod may have it."""
CHECKS: Final = "app.demo.kakao.com/checks"
"""The label of a check's pods: the BlueGreen that they belong to."""
TEMPLATE: Final = "app.demo.kakao.com/template"
"""The annotation of a check's Job: the template that it is for."""
JOB_NAME: Final = "batch.kubernetes.io/job-name"
LONGEST_REASON: Final = 200


@dataclass(frozen=True, slots=True)
class Trial:
    """All checks of one template of a colour, as far as they are.

    `statuses` is what the status says of each; `begun` are the Jobs that exist, `missing` those
    that are to be created once the colour can be checked.
    """

    statuses: tuple[CheckStatus, ...]
    begun: tuple[Keep, ...]
    missing: tuple[Create, ...]
    recorded: bool = False
    """Whether the status says already that all have passed."""

    @property
    def verdict(self) -> CheckVerdict:
        """`Failed` if any has failed, `Passed` if all have passed, else `Running`.

        Nothing has passed before the status says so: the Jobs go once the colour is routed.
        """
        verdicts = {check.verdict for check in self.statuses}
        if "Failed" in verdicts:
            return "Failed"
        return "Passed" if self.recorded and verdicts == {"Passed"} else "Running"


UNTRIED: Final = Trial((), (), ())


def trial(bg: BlueGreen, phase: Phase, template: str, observed: Observed) -> Trial:
    """Return what the checks say about this template of a colour."""
    jobs = {job.name: job for job in observed.all(Job)}
    pods = [pod for pod in observed.all(Pod) if View(pod.labels).text(CHECKS)]
    statuses: list[CheckStatus] = []
    begun: list[Keep] = []
    missing: list[Create] = []
    passed: list[bool] = []
    for check in bg.spec.checks or ():
        name = job_name(bg, phase, template, check)
        job = jobs.get(name)
        recorded = next((one for one in bg.status.checks or () if one.job == name), None)
        one = CheckStatus(
            name=check.name, template=template, verdict="Running", job=name, time=observed.now
        )
        passed.append(recorded is not None and _has_passed(recorded, template))
        if passed[-1] and (job is None or job.going):
            one = one.model_copy(update={"verdict": "Passed"})
        elif job is not None and View(job.at("metadata", "annotations")).text(TEMPLATE) == template:
            one = one.model_copy(update=_outcome(job, pods))
            begun.append(Keep(Job, name))
        elif job is None:
            missing.append(Create(Job, name, manifest(bg, template, check)))
        statuses.append(_dated(one, recorded))
    return Trial(tuple(statuses), tuple(begun), tuple(missing), recorded=all(passed))


def job_name(bg: BlueGreen, phase: Phase, template: str, check: Check) -> str:
    """Return the name of the Job of one check of one template: at most 62 characters."""
    return f"{bg.metadata.name}-check-{digest(phase, template, check.wire())[:8]}"


def manifest(bg: BlueGreen, template: str, check: Check) -> Object:
    """Return the Job of a check; its pods are selected by no Service of the BlueGreen."""
    given = View(check.job)
    spec: Object = dict(given.mapping("spec"))
    spec.pop("ttlSecondsAfterFinished", None)
    limit = View(spec).number("activeDeadlineSeconds") or check.timeout_seconds
    spec["activeDeadlineSeconds"] = min(limit, check.timeout_seconds)
    pod = View(spec).mapping("template")
    own = View(pod).mapping("metadata", "labels")
    labels = {
        **{name: value for name, value in own.items() if name != NAMED_BY},
        MANAGED_BY: MANAGER,
        CHECKS: bg.metadata.name,
    }
    spec["template"] = {**pod, "metadata": {**View(pod).mapping("metadata"), "labels": labels}}
    annotations = {**given.mapping("metadata", "annotations"), TEMPLATE: template}
    named = dict(given.mapping("metadata", "labels"))
    return {"metadata": {"labels": named, "annotations": annotations}, "spec": spec}


def _outcome(job: Job, pods: Sequence[Pod]) -> dict[str, str]:
    """Return the verdict of a Job, and what it waits for or why it failed.

    What its pods printed is not in it: that may be secret.
    """
    if job.going:
        return {"message": f"Job {job.name} is being deleted"}
    if job.succeeded:
        return {"verdict": "Passed"}
    if job.failed:
        return {"verdict": "Failed", "message": f"Job {job.name} has failed: {_reason(job)}"}
    mine = [pod for pod in pods if View(pod.labels).text(JOB_NAME) == job.name]
    stuck = sorted(f"pod {pod.name}: {pod.waiting_reason}" for pod in mine if pod.waiting_reason)
    return {"message": stuck[0] if stuck else ""}


def _reason(job: Job) -> str:
    conditions = map(View, job.items("status", "conditions"))
    failed = next((one for one in conditions if one.text("type") == "Failed"), View({}))
    words = [words for key in ("reason", "message") if (words := failed.text(key))]
    return ", ".join(words)[:LONGEST_REASON] or "no reason is given"


def _has_passed(recorded: CheckStatus, template: str) -> bool:
    return recorded.verdict == "Passed" and recorded.template == template


def _dated(check: CheckStatus, recorded: CheckStatus | None) -> CheckStatus:
    """Return a check with the time at which its verdict was first observed."""
    if recorded and (recorded.verdict, recorded.template) == (check.verdict, check.template):
        return check.model_copy(update={"time": recorded.time})
    return check
