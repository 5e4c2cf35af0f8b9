"""CronJob: the controller, which starts are due or missed, the Jobs they make, their history."""
