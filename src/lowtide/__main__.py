"""The entry point: `lowtide` and `python -m lowtide`."""

import lowtide


def main() -> None:
    lowtide.run()


if __name__ == "__main__":
    main()
