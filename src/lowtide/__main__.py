"""`python -m lowtide` is the same as `lowtide`."""

from lowtide.cli import main

main()
