"""Scaler: replicas of Deployments and StatefulSets by the hour, as their annotations say."""
