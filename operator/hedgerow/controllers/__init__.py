"""Controllers: one pure function per custom resource."""
