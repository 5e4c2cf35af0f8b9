"""new: the package of an operator of one's own, from templates."""
