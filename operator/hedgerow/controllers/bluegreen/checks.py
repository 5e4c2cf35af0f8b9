"""Checks: the Jobs that try a colour before it is routed, and their verdicts.

A Job is named after a digest of all that its verdict depends on: the template of the colour, and
the check itself. So a verdict never counts for another revision: that has another Job.

Name, labels, annotations and owner reference of a Job are what its maker wrote. So only that Job
counts whose uid the API server answered when we created it, which the status records.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from hedgerow import Create, Job, Keep, Pod, View, digest, holders, printable
from hedgerow_schemas.bluegreen import MOST_PODS, CheckStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

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
"""The annotation of a check's Job: the template that it is for. Nothing is decided by it."""
LONGEST_WORDS: Final = 200
"""The most characters of a message of a Job or a pod."""
JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
"""The value of `managedBy` of a Job that Kubernetes itself ends at its deadline."""
GRACE: Final = timedelta(seconds=5)
"""How long to wait after its deadline for a Job that does not end by itself."""
LONG_GRACE: Final = timedelta(minutes=2)
"""The same for a Job that does: by then a watch that went silent has been noticed."""
PAUSES: Final = (0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 300)
"""Seconds between the last Job of a check and the next one, by the number of Jobs so far.

There is no pause before the second Job: a check is run again by deleting its Job.
"""
FORGOTTEN: Final = timedelta(seconds=2 * PAUSES[-1])
"""The time after which an earlier Job of a check does not count as an attempt any more."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The checks of one template of a colour, and how far they have come.

    `statuses` are their next statuses; `begun` are the Jobs that exist, `missing` those to create
    once the colour can be checked. `taken` is a message about somebody else's Job with the name of
    one of ours, or empty. `due` is when the time of a check, or a pause, ends.
    """

    statuses: tuple[CheckStatus, ...]
    begun: tuple[Keep, ...]
    missing: tuple[Create, ...]
    recorded: bool = False
    """Whether the status says already that all have passed."""
    taken: str = ""
    due: datetime | None = None

    @property
    def verdict(self) -> CheckVerdict:
        """`Failed` if any has failed, `Passed` if all have passed, else `Running`.

        `Passed` holds once the status has recorded it: the Jobs are deleted after the switch.
        """
        verdicts = {check.verdict for check in self.statuses}
        if "Failed" in verdicts:
            return "Failed"
        return "Passed" if self.recorded and verdicts == {"Passed"} else "Running"


UNTRIED: Final = Trial((), (), ())


@dataclass(frozen=True, slots=True)
class Attempt:
    """One check: its status, and whether to create or keep the Job of its name, or neither."""

    status: CheckStatus
    job: Literal["", "create", "keep"] = ""
    taken: str = ""
    due: datetime | None = None


def trial(bg: BlueGreen, phase: Phase, template: str, observed: Observed) -> Trial:
    """Return the checks of this template of a colour, with their verdicts."""
    jobs = {job.name: job for job in observed.all(Job)}
    pods = [pod for pod in observed.all(Pod) if View(pod.labels).text(CHECKS)]
    tried = [
        (check, status, attempt(check, status, jobs.get(status.job), pods, observed))
        for check in bg.spec.checks or ()
        for status in [recorded(bg, phase, template, check, observed.now)]
    ]
    return Trial(
        tuple(named(bg, phase, check, outcome.status) for check, _, outcome in tried),
        tuple(Keep(Job, status.job) for _, status, outcome in tried if outcome.job == "keep"),
        tuple(
            Create(Job, status.job, manifest(bg, template, check))
            for check, status, outcome in tried
            if outcome.job == "create"
        ),
        recorded=all(status.verdict == "Passed" for _, status, _ in tried),
        taken=next((outcome.taken for _, _, outcome in tried if outcome.taken), ""),
        due=min((outcome.due for _, _, outcome in tried if outcome.due), default=None),
    )


def recorded(
    bg: BlueGreen, phase: Phase, template: str, check: Check, now: datetime
) -> CheckStatus:
    """Return the status of this very check of this very template; without one, it begins now."""
    status = next((known for known in bg.status.checks or () if known.name == check.name), None)
    if status and status.template == template and status.job == named(bg, phase, check, status).job:
        return status
    begun = CheckStatus(name=check.name, template=template, verdict="Running", job="", time=now)
    return named(bg, phase, check, begun)


def named(bg: BlueGreen, phase: Phase, check: Check, status: CheckStatus) -> CheckStatus:
    """Return a check with the name of the Job that counts from now on."""
    name = job_name(bg, phase, status.template, check, status.instead_of or "")
    return status.model_copy(update={"job": name})


def attempt(
    check: Check, status: CheckStatus, job: Job | None, pods: Sequence[Pod], observed: Observed
) -> Attempt:
    """Return the next status of a check, and what to do with the Job of that name.

    A change of the Job that counts is recorded before another one is created: a pass may end after
    any write.
    """
    now, made = observed.now, observed.created(Job).get(status.job, "")
    if status.start_time and status.start_time > now:  # by a clock that was ahead
        status = _update(status, now, start_time=now.replace(microsecond=0))
    is_new = bool(made) and made != status.uid
    if is_new:
        status = _update(_counted(status, now), now, uid=made, verdict="Running", message="")
    is_ours = job is not None and bool(status.uid) and job.uid == status.uid
    if status.verdict == "Passed":
        return Attempt(status, "keep" if is_ours else "")
    if job is None:
        return Attempt(status) if is_new else _missing(status, now)
    if job.going:
        going = f"Job {job.name} is being deleted"
        return Attempt(_update(status, now, verdict="Running", message=going), "keep")
    if not is_ours:
        return _unproven(status, job, observed)
    return _judged(check, status, job, pods, now)


def _judged(
    check: Check, status: CheckStatus, job: Job, pods: Sequence[Pod], now: datetime
) -> Attempt:
    """Return the verdict of our own Job; once a check has failed, that stays."""
    if status.verdict == "Failed":
        return Attempt(status, "keep")
    grace = LONG_GRACE if _ends_by_itself(job) else GRACE
    end = (status.start_time or now) + timedelta(seconds=check.timeout_seconds) + grace
    update = _outcome(job, pods, check.timeout_seconds if now >= end else None)
    due = None if "verdict" in update else end
    return Attempt(_update(status, now, **update), "keep", due=due)


def _ends_by_itself(job: Job) -> bool:
    """Return whether Kubernetes ends a Job at its deadline, and so tells more of why it failed."""
    is_kubernetes = job.text("spec", "managedBy") in ("", JOB_CONTROLLER)
    return is_kubernetes and not job.at("spec", "suspend")


def _missing(status: CheckStatus, now: datetime) -> Attempt:
    """Return the next step if there is no Job: it was not created yet, or somebody deleted it."""
    pause = timedelta(seconds=PAUSES[min(status.attempts or 0, len(PAUSES) - 1)])
    due = status.start_time + pause if status.start_time else now
    if due <= now:
        return Attempt(_update(status, now, verdict="Running", message=""), "create")
    message = f"Job {status.job} does not exist any more: it is created again after a pause"
    # Kept means read by name: without our label no watch would show it.
    return Attempt(_update(status, now, verdict="Running", message=message), "keep", due=due)


def _unproven(status: CheckStatus, job: Job, observed: Observed) -> Attempt:
    """Return the next step if a Job has our name, but not the uid in the answer to our create.

    If its managed fields name us, it may be ours, and the answer was lost; but anybody may write
    these. So the Job does not count, and the check gets one of another name.
    """
    now = observed.now
    if any(holder.is_applier(observed.field_manager, "") for holder in holders(job, "spec")):
        message = f"who created Job {job.name} is not known, so it does not count: another follows"
        update = {"uid": None, "instead_of": job.uid, "verdict": "Running", "message": message}
        return Attempt(_update(_counted(status, now), now, **update), "keep")
    taken = (
        f"Job {job.name} exists, and hedgerow did not create it: it counts for nothing, and is left"
        " alone; delete it"
    )
    return Attempt(_update(status, now, verdict="Running", message=taken), "keep", taken)


def _counted(status: CheckStatus, now: datetime) -> CheckStatus:
    """Return a check with one Job more, which begins now."""
    is_recent = status.start_time is not None and now - status.start_time < FORGOTTEN
    attempts = 1 + ((status.attempts or 0) if is_recent else 0)
    return _update(status, now, start_time=now.replace(microsecond=0), attempts=attempts)


def _update(status: CheckStatus, now: datetime, **update: object) -> CheckStatus:
    """Return a copy with other values; a verdict has the time at which it was first observed."""
    if update.get("verdict", status.verdict) != status.verdict:
        update["time"] = now.replace(microsecond=0)
    return status.model_copy(update=update)


def job_name(bg: BlueGreen, phase: Phase, template: str, check: Check, instead_of: str = "") -> str:
    """Return the name of the Job of one check of one template: at most 62 characters.

    `instead_of` is the uid of an earlier Job of which it is not known who created it.
    """
    parts = (phase, template, check.wire(), *filter(None, [instead_of]))
    return f"{bg.metadata.name}-check-{digest(*parts)[:8]}"


def manifest(bg: BlueGreen, template: str, check: Check) -> Object:
    """Return the Job of a check; its pods are selected by no Service of the BlueGreen."""
    given = View(check.job)
    spec: Object = dict(given.mapping("spec"))
    spec.pop("ttlSecondsAfterFinished", None)
    limit = View(spec).number("activeDeadlineSeconds") or check.timeout_seconds
    spec["activeDeadlineSeconds"] = min(limit, check.timeout_seconds)
    for count in ("parallelism", "completions"):
        if View(spec).number(count) > MOST_PODS:  # stored before the definition refused it
            spec[count] = MOST_PODS
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


def _outcome(job: Job, pods: Sequence[Pod], timeout: int | None) -> dict[str, str]:
    """Return the verdict of our Job, and what it waits for or why it failed.

    `timeout` are the seconds that it had, if they are over: a Job that is suspended, or that
    another controller manages, never ends by itself. What its pods printed is not in it: that may
    be secret.
    """
    if job.succeeded:
        return {"verdict": "Passed", "message": ""}
    if job.failed:
        reason = _reason(job) or "no reason is given"
        return {"verdict": "Failed", "message": f"Job {job.name} has failed: {reason}"}
    if timeout is not None:
        why = ": ".join(
            filter(None, (f"Job {job.name} has not ended in {timeout} s", _reason(job)))
        )
        return {"verdict": "Failed", "message": why}
    mine = [pod for pod in pods if pod.controller_uid == job.uid]
    stuck = sorted(f"pod {pod.name}: {pod.why_not_ready}" for pod in mine if pod.why_not_ready)
    return {"message": printable(stuck[0], LONGEST_WORDS) if stuck else ""}


def _reason(job: Job) -> str:
    """Return why a Job has failed, or is going to once its pods have ended."""
    conditions = {
        View(condition).text("type"): View(condition)
        for condition in job.items("status", "conditions")
    }
    why = conditions.get("Failed") or conditions.get("FailureTarget") or View({})
    words = [words for key in ("reason", "message") if (words := why.text(key))]
    return printable(", ".join(words), LONGEST_WORDS)
