"""Release: `hedgerow release`, giving up fields of a child."""
