"""Fields: who owns which part of a Kubernetes object, and what is not as it was declared.

Everything here is a pure function of objects as the API server returns them:

- `paths`, `sets`: field paths, list items and the trees of `fieldsV1`.
- `managed`: the entries of `metadata.managedFields`, and the parts that each manager holds.
- `ownership`: is a field contested? Which declared fields are not ours and equal, who holds them,
  and what may have been ours once managed fields were emptied.
- `coownership`: a declaration fitted to what others hold, taking nothing from them.
- `applyconfiguration`: what is sent, and what a manager sent before.
- `canonical`: the API server's spelling of quantities and times.
- `owners`, `diff`, `redaction`: an object as people see it, Secret values hidden.
"""
