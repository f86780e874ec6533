"""The soak: nodes and pods come and go for an hour, on real parts, while memory, descriptors and
tasks of the scheduler are sampled. None of them may grow, and what it believes has to be so."""
