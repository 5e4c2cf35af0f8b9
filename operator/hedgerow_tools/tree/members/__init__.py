"""Members: which objects are in a tree, and how each is getting on; pure."""
