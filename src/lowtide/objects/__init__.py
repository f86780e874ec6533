"""What Kubernetes says: frozen data decoded from the wire, and the arithmetic on it. No I/O."""
