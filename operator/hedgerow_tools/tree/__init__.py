"""Tree, as typed: `hedgerow tree`, resources and their descendants, once or live."""
