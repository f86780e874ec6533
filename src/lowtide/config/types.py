"""The fields of KubeSchedulerConfiguration v1 as frozen data, with their independent defaults.

`decoding` fills it from a file, `defaults` adds defaults that depend on other fields, and every
mode reads it. The text below a field is its entry in docs/configuration.md, as for plugins' args.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

# `decoding` reads bounds and markers; it reports all mistakes, not only the first.
Duration = Annotated[float, Meta(extra={"duration": True})]
Amount = Annotated[str, Meta(extra={"amount": True})]  # also accepts a number without quotes
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Weight = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Percentage = Annotated[int, Meta(ge=0, le=100)]
Name = Annotated[str, Meta(min_length=1)]


class _Fields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pass


class EnabledPlugin(_Fields, frozen=True):
    name: Name
    """A plugin from the table below, or one of your own: the name of an entry point, or
    `module:Class`."""
    weight: Weight = 0
    """The factor of its score; 0 counts as 1."""


class DisabledPlugin(_Fields, frozen=True):
    name: Name
    """The plugin, or `*` for all default ones."""


class PluginSet(_Fields, frozen=True):
    enabled: tuple[EnabledPlugin, ...] = ()
    """Plugins that run here in addition to the default ones, in this order. A default plugin named
    here comes first; at `multiPoint` it keeps its place."""
    disabled: tuple[DisabledPlugin, ...] = ()
    """Default plugins that do not run here."""


class Plugins(_Fields, frozen=True):
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def plugin_set(self, point: str) -> PluginSet:
        """Return the set of an extension point by its name in the file, such as `preFilter`."""
        plugin_set: PluginSet = getattr(self, _ATTRIBUTES[point])
        return plugin_set


_ATTRIBUTES = {known.encode_name: known.name for known in msgspec.structs.fields(Plugins)}

MULTI_POINT = "multiPoint"
EXTENSION_POINTS = tuple(point for point in _ATTRIBUTES if point != MULTI_POINT)


class PluginConfig(_Fields, frozen=True):
    name: Name
    """The plugin, or `Extender` for the settings of `lowtide extender` for this profile."""
    args: dict[str, Any] | None = None  # raw: the plugin's args type decodes it
    """The plugin's args, see below."""


class Profile(_Fields, frozen=True):
    scheduler_name: Name = ""
    """This profile schedules the pods with this `schedulerName`. A single profile may leave it out:
    it is then `default-scheduler`. Several profiles need different names."""
    percentage_of_nodes_to_score: Percentage | None = None
    """Overrides the value for all profiles."""
    plugins: Plugins = Plugins()
    """The plugins to enable and disable, at `multiPoint` (every extension point that they
    implement) or at a single extension point."""
    plugin_config: tuple[PluginConfig, ...] = ()
    """The args of plugins, at most one entry per plugin."""


class LeaderElection(_Fields, frozen=True):
    leader_elect: bool = True
    """Only one of several processes schedules; the others stand by."""
    lease_duration_seconds: Duration = field(default=15.0, name="leaseDuration")
    """A standby may take over a lease that was not renewed for this long. Bounds: more than
    `renewDeadline`."""
    renew_deadline_seconds: Duration = field(default=10.0, name="renewDeadline")
    """The leader exits if it cannot renew the lease for this long. Bounds: more than 1.2 times
    `retryPeriod`."""
    retry_period_seconds: Duration = field(default=2.0, name="retryPeriod")
    """How often the leader renews the lease and standbys check it. Bounds: more than 0s."""
    resource_lock: str = "leases"
    """The kind of the lock. Bounds: `leases`."""
    resource_name: str = ""
    """The Lease's name. Default: `kube-scheduler` if a profile is named `default-scheduler`, else
    the first profile's name."""
    resource_namespace: str = "kube-system"
    """The Lease's namespace."""


class ClientConnection(_Fields, frozen=True):
    kubeconfig: str = ""
    """The kubeconfig file for the API server, as with `--kubeconfig`."""
    accept_content_types: str = ""
    """The content types that answers of the API server may have."""
    content_type: str = "application/json"  # kube-scheduler's default is protobuf; not supported
    """The content type of requests to the API server."""
    qps: float | None = None
    """The most requests per second to the API server. Without it, or at 0 or less, the client has
    no limit."""
    burst: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 100
    """How many requests may be sent at once if `qps` limits them."""


class ExtenderTls(_Fields, frozen=True):
    insecure: bool = False
    """Accepts any server certificate."""
    server_name: str = ""
    """The name to verify in the certificate, if it differs from the address's host."""
    cert_file: str = ""
    """The client certificate, for an extender that asks for one."""
    key_file: str = ""
    """The key of the client certificate."""
    ca_file: str = ""
    """The CA that signed the extender's certificate."""
    cert_data: bytes = b""
    """The content of `certFile` in base64."""
    key_data: bytes = b""
    """The content of `keyFile` in base64."""
    ca_data: bytes = b""
    """The content of `caFile` in base64."""


class ManagedResource(_Fields, frozen=True):
    name: Name
    """An extended resource such as `example.com/gpu`."""
    ignored_by_scheduler: bool = False
    """NodeResourcesFit ignores this resource."""


class Extender(_Fields, frozen=True):
    url_prefix: Name
    """The extender's URL; a slash and a verb are appended. Bounds: `http` or `https`."""
    filter_verb: str = ""
    """The verb that rejects nodes. A verb that is left out is not called."""
    preempt_verb: str = ""
    """The verb that drops candidate nodes and victims of a preemption."""
    prioritize_verb: str = ""
    """The verb that scores nodes."""
    weight: Int64 = 0
    """The factor of its scores. Bounds: at least 1 with `prioritizeVerb`."""
    bind_verb: str = ""
    """The verb that binds pods. Bounds: at most one extender."""
    enable_https: bool = field(default=False, name="enableHTTPS")
    """For an `https` URL: without a CA in `tlsConfig`, any server certificate is accepted."""
    tls_config: ExtenderTls | None = None
    """Certificates for HTTPS."""
    http_timeout_seconds: Duration = field(default=5.0, name="httpTimeout")
    """A call that takes longer fails; 0s counts as 5s. Bounds: at least 0s."""
    node_cache_capable: bool = False
    """Requests contain node names instead of whole Nodes."""
    managed_resources: tuple[ManagedResource, ...] = ()
    """The extender is called only for pods that request one of these resources; without any, for
    every pod."""
    ignorable: bool = False
    """A failed call is ignored; otherwise it fails the scheduling attempt."""


class KubeSchedulerConfiguration(_Fields, frozen=True):
    api_version: str
    """`kubescheduler.config.k8s.io/v1`; `v1beta1`, `v1beta2` and `v1beta3` are read as `v1`, with a
    warning."""
    kind: str
    """`KubeSchedulerConfiguration`."""
    parallelism: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 16
    """How many nodes are evaluated at once."""
    leader_election: LeaderElection = LeaderElection()
    """How several processes elect the one that schedules."""
    client_connection: ClientConnection = ClientConnection()
    """The connection to the API server."""
    enable_profiling: bool = True
    """Serves profiles of the process. Use `--debug` instead, which serves them on loopback."""
    enable_contention_profiling: bool | None = None
    """Serves profiles of locks. Default: the value of `enableProfiling`."""
    percentage_of_nodes_to_score: Percentage = 0
    """The search for nodes ends when this percentage of the nodes fits."""
    pod_initial_backoff_seconds: Annotated[int, Meta(ge=1, le=2**63 - 1)] = 1
    """A pod's backoff after its first failed attempt; it doubles after each further one."""
    pod_max_backoff_seconds: Annotated[int, Meta(ge=1, le=2**63 - 1)] = 10
    """The longest backoff. Bounds: at least `podInitialBackoffSeconds`."""
    profiles: tuple[Profile, ...] = ()
    """Sets of plugins, each for the pods with one `schedulerName`. Default: one profile,
    `default-scheduler`, with the default plugins."""
    extenders: tuple[Extender, ...] = ()
    """Extenders to call for each pod, [as in kube-scheduler](kube-scheduler.md#extenders)."""
    delay_cache_until_active: bool = False
    """A standby fills its cache only when it becomes the leader."""
