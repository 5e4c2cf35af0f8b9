"""Demo, as typed: the commands that show the operator at work, and why to apply server-side."""
