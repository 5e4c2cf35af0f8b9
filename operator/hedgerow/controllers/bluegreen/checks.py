"""Checks: the Jobs that try a colour before it is routed, and their verdicts.

A Job is named after a digest of all that its verdict depends on: the template of the colour, and
the check itself. So a verdict never counts for another revision: that has another Job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow import CONFINED, Create, Job, Keep, Pod, View, digest, unprivileged
from hedgerow_schemas.bluegreen import CheckStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow import Object, Observed
    from hedgerow.controllers.bluegreen.switch import CheckVerdict
    from hedgerow_schemas.bluegreen import BlueGreen, Check, HttpCheck, Phase

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
_NOBODY: Final = 65534
_LEFT_SECONDS: Final = 10
"""How long before its deadline a check gives up: its pods and what they say go with that."""
ASK: Final = r"""
end=$(($(date +%s) + $6))
passed=0
while [ "$passed" -lt "$3" ]; do
  if command -v curl >/dev/null 2>&1; then
    status=$(curl -gs -o /dev/null -m "$5" -w '%{http_code}' "$1")
  else
    # Of Debian's busybox, wget -T ends by a segmentation fault.
    status=$(timeout "$5" wget -q -S -O /dev/null "$1" 2>&1 |
      sed -n 's|^ *HTTP/[0-9.]* *\([0-9]*\).*|\1|p' | head -n 1)
  fi
  if [ "$status" = "$2" ]; then
    passed=$((passed + 1))
  else
    passed=0
    case "$status" in
      "" | 000) said="no answer from $1" ;;
      *) said="answer $status from $1, expected $2" ;;
    esac
    echo "$said"
    [ ! -w /dev/termination-log ] || echo "$said" >/dev/termination-log
    [ "$(date +%s)" -lt "$end" ] || exit 1
  fi
  [ "$passed" -ge "$3" ] || sleep "$4"
done
"""
"""Ask until enough answers in a row are as expected, or the time is over."""


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


def trial(bg: BlueGreen, phase: Phase, template: str, observed: Observed, address: str) -> Trial:
    """Return what the checks say about this template of a colour.

    `address` is the IP address of the preview Service.
    """
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
            one = one.model_copy(update=_outcome(job, pods, asks=check.http is not None))
            begun.append(Keep(Job, name))
        elif job is None:
            missing.append(Create(Job, name, manifest(bg, template, check, address)))
        statuses.append(_dated(one, recorded))
    return Trial(tuple(statuses), tuple(begun), tuple(missing), recorded=all(passed))


def job_name(bg: BlueGreen, phase: Phase, template: str, check: Check) -> str:
    """Return the name of the Job of one check of one template: at most 62 characters."""
    return f"{bg.metadata.name}-check-{digest(phase, template, check.wire())[:8]}"


def manifest(bg: BlueGreen, template: str, check: Check, address: str) -> Object:
    """Return the Job of a check; its pods are selected by no Service of the BlueGreen."""
    given = View(check.job or {})
    spec: Object = (
        _asking(bg, check, check.http, address) if check.http else dict(given.mapping("spec"))
    )
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


def port_of(bg: BlueGreen, http: HttpCheck) -> int | None:
    """Return the number of the Service's port that a check asks at, or None if there is none."""
    for port in bg.spec.ports:
        if http.port in (None, port.port) or (port.name and http.port == port.name):
            return port.port
    return None


def _asking(bg: BlueGreen, check: Check, http: HttpCheck, address: str) -> Object:
    host = f"[{address}]" if ":" in address else address
    url = f"http://{host}:{port_of(bg, http)}{http.path}"
    limit = check.timeout_seconds - min(_LEFT_SECONDS, check.timeout_seconds // 2)
    numbers = (
        *(http.expected_status, http.successes, http.period_seconds, http.timeout_seconds),
        limit,
    )
    container = {
        "name": "check",
        "image": http.image,
        "command": ["sh", "-c", ASK, "check", url, *map(str, numbers)],
        "securityContext": CONFINED,
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # The shell of a container that is process 1 ignores the signal.
        "terminationGracePeriodSeconds": 1,
        "securityContext": unprivileged(_NOBODY),
        "containers": [container],
    }
    return {"backoffLimit": 0, "template": {"spec": pod}}


def _outcome(job: Job, pods: Sequence[Pod], *, asks: bool) -> dict[str, str]:
    """Return the verdict of a Job, and what it waits for or why it failed.

    Only of a Job of ours, which `asks`, the last words are told: others may print what is secret.
    """
    if job.going:
        return {"message": f"Job {job.name} is being deleted"}
    if job.succeeded:
        return {"verdict": "Passed"}
    mine = [pod for pod in pods if View(pod.labels).text(JOB_NAME) == job.name]
    if job.failed:
        last = [pod.last_words for pod in mine] if asks else []
        words = sorted(" ".join(said.split()) for said in last if said)
        reason = words[0] if words else _reason(job)
        return {"verdict": "Failed", "message": f"Job {job.name} has failed: {reason}"}
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
