"""Events: which ones a pass publishes, how often, and how they are written."""
