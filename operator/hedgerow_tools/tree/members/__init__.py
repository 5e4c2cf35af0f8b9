"""Members: which objects are in a tree, and what is told of each; pure."""
