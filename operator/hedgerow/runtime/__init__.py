"""Runtime: the imperative shell that carries out what controllers desire."""
