"""Decision records, recordings of a run, and explaining."""
