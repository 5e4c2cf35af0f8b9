"""Passes: one pass over a resource, from what is cached to writes and what the resource says.

- `reconciler`: the passes of one controller; `resource_pass`: one of them, and `context`: what all
  of them share.
- `observation`: what a pass finds cached, and the plan that follows; `turns` lets other work go on.
- `writer`, `applier`: the writes, one at a time; `refusals`: what follows from a refusal.
- `report`: what the resource says in the end; `unreadable`: of kinds that are not shown.
- `reads`: what is read by name; `state`: what is remembered; `giving_back`: after the resource.
- `slow_compose`: tells of a compose that blocks the event loop.
"""
