"""Render: how the commands show what they found, on a terminal and as a page."""
