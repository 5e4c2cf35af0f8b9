"""Deploy: the manifests of hedgerow in a cluster, as values; nothing here asks a cluster."""
