"""Watch, as typed: `hedgerow watch`, what is added, updated and deleted, and by whom."""
