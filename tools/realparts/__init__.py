"""The real parts that Lowtide is tested and measured with: obtaining them and running them.

Used by the fixtures of tests/real and by bench; nothing in src/lowtide knows of it."""
