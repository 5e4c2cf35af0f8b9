"""Fields: who owns which part of a Kubernetes object, and which parts differ from a declaration.

Everything here is a pure function of objects as the API server returns them:

- `paths`, `sets`: field paths, list items and the trees of `fieldsV1`.
- `managed_fields`: the entries of `metadata.managedFields`, and the parts that each manager holds.
- `ownership`: is a field contested? Which declared fields are lost or changed, who holds them, and
  which list items have no known owner after managed fields were emptied? How does a declaration
  give way to what others hold, so that it takes nothing from them?
- `applyconfiguration`: what to send, and what a manager sent before.
- `canonical`: the API server's spelling of quantities and times.
- `redaction`: an object as people see it, with Secret values hidden.
"""
