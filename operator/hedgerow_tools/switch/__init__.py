"""Switch: `hedgerow promote` and `hedgerow rollback`, one field of a BlueGreen each."""
