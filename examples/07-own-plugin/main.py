"""Every command of Lowtide, with the plugin: `python main.py extender --config config.yaml`."""

from spot_nodes import SpotNodes

import lowtide

if __name__ == "__main__":
    lowtide.run(plugins={"SpotNodes": SpotNodes})
