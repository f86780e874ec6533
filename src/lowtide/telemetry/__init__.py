"""What talks to Prometheus: the client, and the poller that publishes readings."""
