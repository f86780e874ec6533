"""Checks of the metric path: from what was asked and answered to findings that say how to fix."""
