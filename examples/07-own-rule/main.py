"""Every command of Lowtide, with the rule: `python main.py extender --config config.yaml`."""

from spot_nodes import SpotNodes

import lowtide

if __name__ == "__main__":
    lowtide.run(plugins={"SpotNodes": SpotNodes})
