"""hedgerow_tools: commands for any cluster, and what they show."""
