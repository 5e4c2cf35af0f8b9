"""Schemas: the custom resources as pydantic models, and tolerant views of built-in objects."""
