"""audit: `hedgerow audit`, how any operator treats the fields of others."""
