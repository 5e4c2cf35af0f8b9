"""Plan: the writes that make the cluster match what a controller desires; pure functions.

- `children`: the plan of one resource and of each child: writes to make, conflicts to show.
- `input`, `writes`: what a plan is made from, and the requests that it consists of.
- `conflict_messages`, `remedies`: how contested fields are reported, and how to settle them.
- `yield_and_claim`: the annotations `hedgerow.dev/yield` and `hedgerow.dev/claim`.
- `status`, `conditions`: what the resource's status says afterwards; `status_annotation`: what a
  built-in resource says instead.
- `immutable`, `installations`, `too_large`: special cases: fields that cannot change, objects of
  other installations, objects too large to cache.
"""
