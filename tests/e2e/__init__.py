"""E2E: a package for pytest, so that its tests share a node and no others have it beside them."""
