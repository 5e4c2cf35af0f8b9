"""Install: `hedgerow install` and `hedgerow uninstall`, and the definitions they apply."""
