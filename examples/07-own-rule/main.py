"""Every command of Lowtide, with the rule: `python main.py extender --config config.yaml`."""

from spot_nodes import SpotNodes

from lowtide.cli import main

if __name__ == "__main__":
    main({"SpotNodes": SpotNodes})
