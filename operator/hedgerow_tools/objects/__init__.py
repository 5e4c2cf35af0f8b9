"""Objects: how the commands find the objects of a cluster, of any kind."""
