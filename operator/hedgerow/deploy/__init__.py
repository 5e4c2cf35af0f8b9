"""Deploy: the manifests of hedgerow in a cluster, as values; nothing here contacts a cluster."""
