"""Admission: the validating and mutating webhooks."""
