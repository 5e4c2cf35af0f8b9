"""Admission: the validating webhooks."""
