"""CronJob: the controller, due and missed starts, the Jobs of starts, and their history."""
