"""Admission: the validating and mutating webhooks, from request to answer."""
