"""KubeSchedulerConfiguration, read strictly into frozen data.

`load.load_config` reads a file, `plugin_sets.expand_profiles` says which plugins run where."""
