"""BlueGreen: the controller, the states of a switch, and the checks before it."""
