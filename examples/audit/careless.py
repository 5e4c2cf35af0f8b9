import contextlib
import os

import httpx
from hedgerow_testing import Api

api = Api(os.environ["KUBECONFIG"])
backups = "/apis/example.com/v1/backups"


def finalize(backup):
    spec = backup["spec"]
    if spec["every"] == "60m":
        spec["every"] = "1h"
    spec.setdefault("suspend", False)
    backup["metadata"]["finalizers"] = ["example.com/archive"]
    api.put(backup, "backup-operator")


while True:
    with contextlib.suppress(httpx.HTTPError):
        for backup in api.raw("GET", backups).body["items"]:
            meta = backup["metadata"]
            if "deletionTimestamp" in meta:
                meta.pop("finalizers", None)
                api.put(backup, "backup-operator")
            elif "finalizers" not in meta:
                finalize(backup)
        api.raw("GET", backups, params={"watch": "true", "timeoutSeconds": "2"})
