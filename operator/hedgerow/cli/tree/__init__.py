"""Tree, as typed: resources and what came of them, once or live."""
