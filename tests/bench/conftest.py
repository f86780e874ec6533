"""Lets tests import the modules of bench, which is run as a folder and not installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
