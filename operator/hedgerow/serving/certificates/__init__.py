"""Certificates: issued, shared between replicas, rotated and served, or mounted from outside."""
