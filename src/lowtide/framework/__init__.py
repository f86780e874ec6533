"""What a plugin is, and how plugins are run over the table of nodes."""
