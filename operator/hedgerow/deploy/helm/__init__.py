"""Helm: the overlays as one chart, whose templates are made from the same objects."""
