"""Plan, as typed: what applying would do, for terminal and program."""
