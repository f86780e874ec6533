"""Reads KubeSchedulerConfiguration strictly into frozen data.

`load.load_config` reads a file; `plugin_sets.expand_profiles` lists the plugins of each extension
point."""
