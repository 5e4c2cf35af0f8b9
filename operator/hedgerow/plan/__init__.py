"""Plan: the writes that make the cluster match what a controller desires; pure functions.

- `input`, `plan`: the plan of one resource: writes to make, conflicts to show.
- `child`, `writes`: the plan of one child, and the requests that it consists of.
- `transfers`: fields that change managers.
- `conflicts`, `remedies`, `policy`: contested fields, how to settle them, and the annotations
  `hedgerow.dev/yield` and `hedgerow.dev/claim`.
- `status`, `conditions`: what the resource's status says afterwards.
- `immutable`, `finalizers`, `installations`, `oversized`: special cases: fields that cannot change,
  finalizers, objects of other installations, objects too large to cache.
"""
