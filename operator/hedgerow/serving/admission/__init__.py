"""Admission: what validating webhooks answer, and their configuration; pure."""
