"""HTTP: the server of health, metrics and admission, and the limits on its clients."""
