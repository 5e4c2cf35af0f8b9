"""Serving: the operator's HTTP endpoints: health, metrics and admission reviews."""
