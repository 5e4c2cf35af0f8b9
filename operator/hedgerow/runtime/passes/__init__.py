"""Passes: one pass over a resource, from the cached objects to writes and a report.

- `reconciler`: the passes of one controller; `resource_pass`: one of them, and `context`: what all
  of them share.
- `observation`: the cached objects of a resource, and the plan that follows; `turns` lets other
  work go on in between.
- `writer`, `applier`: the writes, one at a time; `refusals`: the reaction to each refusal.
- `report`: the status, annotation or Events at the end of a pass; `unreadable`: its words about
  kinds that the API server does not show.
- `reads`: the objects that a pass reads by name; `state`: its memory of a resource;
  `giving_back`: the pass over fields of a resource that is gone.
"""
