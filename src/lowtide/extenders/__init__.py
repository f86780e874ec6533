"""TALKS TO EXTENDERS: carries the machine's questions over HTTP, and the answers back."""
