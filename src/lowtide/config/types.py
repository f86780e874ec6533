"""The fields of KubeSchedulerConfiguration v1 as frozen data, with the defaults that stand alone.

`decoding` fills it from a file, `defaults` adds what depends on other fields; every mode reads it.
The sentence below a field is its entry in docs/configuration.md, as in every args of a rule."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

# Bounds and markers are read by `decoding`, which reports every mistake and not only the first.
Duration = Annotated[float, Meta(extra={"duration": True})]
Amount = Annotated[str, Meta(extra={"amount": True})]  # a number may stand without quotes
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Weight = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Percentage = Annotated[int, Meta(ge=0, le=100)]
Name = Annotated[str, Meta(min_length=1)]


class _Fields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pass


class EnabledPlugin(_Fields, frozen=True):
    name: Name
    """A rule of the table below, or one of yours: an entry point's name, or `module:Class`."""
    weight: Weight = 0
    """How much its score counts; 0 counts as 1."""


class DisabledPlugin(_Fields, frozen=True):
    name: Name
    """The rule, or `*` for every default one."""


class PluginSet(_Fields, frozen=True):
    enabled: tuple[EnabledPlugin, ...] = ()
    """Rules that run here besides the default ones, in this order; a default one named here comes
    first."""
    disabled: tuple[DisabledPlugin, ...] = ()
    """Default rules that do not run here."""


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

    def at(self, point: str) -> PluginSet:
        """Give the set of an extension point by its name in the file, such as `preFilter`."""
        plugin_set: PluginSet = getattr(self, _ATTRIBUTES[point])
        return plugin_set


_ATTRIBUTES = {known.encode_name: known.name for known in msgspec.structs.fields(Plugins)}

MULTI_POINT = "multiPoint"
EXTENSION_POINTS = tuple(point for point in _ATTRIBUTES if point != MULTI_POINT)


class PluginConfig(_Fields, frozen=True):
    name: Name
    """The rule, or `Extender` for how the extender answers by this profile."""
    args: dict[str, Any] | None = None  # raw: the plugin's own args type decodes it
    """The rule's own: see below."""


class Profile(_Fields, frozen=True):
    scheduler_name: Name = ""
    """The pods that name it are placed by this profile; a single profile without a name is
    `default-scheduler`, of several each needs a name of its own."""
    percentage_of_nodes_to_score: Percentage | None = None
    """Takes the place of the configuration's own."""
    plugins: Plugins = Plugins()
    """Which rules run where: at `multiPoint` (wherever they can) or at a single extension point."""
    plugin_config: tuple[PluginConfig, ...] = ()
    """Args of rules, once for each rule."""


class LeaderElection(_Fields, frozen=True):
    leader_elect: bool = True
    """Only one process schedules; the others stand by."""
    lease_duration_seconds: Duration = field(default=15.0, name="leaseDuration")
    """A lease that was not renewed for so long may be taken. Bounds: more than `renewDeadline`."""
    renew_deadline_seconds: Duration = field(default=10.0, name="renewDeadline")
    """A leader that could not renew for so long ends. Bounds: more than 1.2 times `retryPeriod`."""
    retry_period_seconds: Duration = field(default=2.0, name="retryPeriod")
    """How often the lease is renewed, or looked at. Bounds: more than 0s."""
    resource_lock: str = "leases"
    """The kind of the lock. Bounds: `leases`."""
    resource_name: str = ""
    """The Lease; left out: `kube-scheduler` where a profile is called `default-scheduler`,
    otherwise the first profile's name."""
    resource_namespace: str = "kube-system"
    """The Lease's namespace."""


class ClientConnection(_Fields, frozen=True):
    kubeconfig: str = ""
    """How the API server is reached, as by `--kubeconfig`."""
    accept_content_types: str = ""
    """What the API server may answer in."""
    content_type: str = "application/json"  # kube-scheduler's is protobuf, which is not spoken here
    """What the API server is asked in."""
    qps: float | None = None
    """Requests a second to the API server at most; left out, 0 or less: no limit of our own."""
    burst: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 100
    """So many requests may come at once where `qps` limits them."""


class ExtenderTls(_Fields, frozen=True):
    insecure: bool = False
    """Believes any certificate."""
    server_name: str = ""
    """The name that the certificate must have, where it is not the address's."""
    cert_file: str = ""
    """Our own certificate, which the extender may ask for."""
    key_file: str = ""
    """Its key."""
    ca_file: str = ""
    """The CA that has signed the extender's certificate."""
    cert_data: bytes = b""
    """As `certFile`, in base64."""
    key_data: bytes = b""
    """As `keyFile`, in base64."""
    ca_data: bytes = b""
    """As `caFile`, in base64."""


class ManagedResource(_Fields, frozen=True):
    name: Name
    """An extended resource such as `example.com/gpu`: only pods that ask for one of these are shown
    to the extender."""
    ignored_by_scheduler: bool = False
    """NodeResourcesFit does not look at it."""


class Extender(_Fields, frozen=True):
    url_prefix: Name
    """Where it is asked; a verb is added after a slash. Bounds: `http` or `https`."""
    filter_verb: str = ""
    """Where it strikes out nodes; left out: it is not asked to."""
    preempt_verb: str = ""
    """Where it strikes out victims of preemption."""
    prioritize_verb: str = ""
    """Where it gives nodes points."""
    weight: Int64 = 0
    """How much its points count. Bounds: at least 1 beside `prioritizeVerb`."""
    bind_verb: str = ""
    """Where it binds pods. Bounds: at most one extender."""
    enable_https: bool = field(default=False, name="enableHTTPS")
    """For an `https` address: without a CA in `tlsConfig`, any certificate is believed."""
    tls_config: ExtenderTls | None = None
    """Certificates for HTTPS."""
    http_timeout_seconds: Duration = field(default=5.0, name="httpTimeout")
    """An answer that takes longer is a failure; 0s counts as 5s. Bounds: at least 0s."""
    node_cache_capable: bool = False
    """It is sent names of nodes, not whole Nodes."""
    managed_resources: tuple[ManagedResource, ...] = ()
    """Left out: it is asked about every pod."""
    ignorable: bool = False
    """A failure of it is passed over; otherwise it fails the attempt."""


class KubeSchedulerConfiguration(_Fields, frozen=True):
    api_version: str
    """`kubescheduler.config.k8s.io/v1`; `v1beta1`, `v1beta2` and `v1beta3` are read as `v1`, with a
    warning."""
    kind: str
    """`KubeSchedulerConfiguration`."""
    parallelism: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 16
    """How many nodes are judged at a time."""
    leader_election: LeaderElection = LeaderElection()
    """Who of several processes schedules."""
    client_connection: ClientConnection = ClientConnection()
    """How the API server is asked."""
    enable_profiling: bool = True
    """Serves profiles of the process; `--debug` does, on loopback."""
    enable_contention_profiling: bool | None = None
    """Profiles of locks; left out: as `enableProfiling`."""
    percentage_of_nodes_to_score: Percentage = 0
    """How many nodes that fit are enough."""
    pod_initial_backoff_seconds: Annotated[int, Meta(ge=1, le=2**63 - 1)] = 1
    """How long a pod waits after its first failed attempt; doubled after each further one."""
    pod_max_backoff_seconds: Annotated[int, Meta(ge=1, le=2**63 - 1)] = 10
    """How long it waits at most. Bounds: at least `podInitialBackoffSeconds`."""
    profiles: tuple[Profile, ...] = ()
    """Sets of rules, each for the pods of one schedulerName; left out: one, `default-scheduler`,
    with the default rules."""
    extenders: tuple[Extender, ...] = ()
    """Who is asked about each pod besides the rules,
    [as in kube-scheduler](kube-scheduler.md#extenders)."""
    delay_cache_until_active: bool = False
    """A standby waits with its cache."""
