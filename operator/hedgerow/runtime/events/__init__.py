"""Events: which Events a pass publishes, how often, and how they are written."""
