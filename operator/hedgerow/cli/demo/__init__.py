"""Demo, as typed: the operator at work, and why definitions need server-side apply."""
