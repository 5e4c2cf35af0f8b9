"""Plan: what separates the cluster from what a controller desires; pure functions.

- `input`, `plan`: the plan of one resource: writes to make, conflicts to show.
- `child`, `writes`: the same for one child, and the requests that come of it.
- `transfers`: fields that change managers.
- `conflicts`, `remedies`, `policy`: contested fields, what settles them, and the annotations
  `hedgerow.dev/yield` and `hedgerow.dev/claim`.
- `status`, `conditions`: what the resource's status says afterwards.
- `immutable`, `finalizers`, `installations`, `oversized`: what a child or resource may not do.
"""
