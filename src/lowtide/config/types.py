"""The fields of KubeSchedulerConfiguration v1 as frozen data, with the defaults that stand alone.

`decoding` fills it from a file, `defaults` adds what depends on other fields; every mode reads it.
"""

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
    weight: Weight = 0  # 0 counts as 1 where a weight is used


class DisabledPlugin(_Fields, frozen=True):
    name: Name  # "*" is every default


class PluginSet(_Fields, frozen=True):
    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: tuple[DisabledPlugin, ...] = ()


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
    args: dict[str, Any] | None = None  # raw: the plugin's own args type decodes it


class Profile(_Fields, frozen=True):
    scheduler_name: Name = ""
    percentage_of_nodes_to_score: Percentage | None = None  # None: the configuration's own
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElection(_Fields, frozen=True):
    leader_elect: bool = True
    lease_duration_seconds: Duration = field(default=15.0, name="leaseDuration")
    renew_deadline_seconds: Duration = field(default=10.0, name="renewDeadline")
    retry_period_seconds: Duration = field(default=2.0, name="retryPeriod")
    resource_lock: str = "leases"
    resource_name: str = ""
    resource_namespace: str = "kube-system"


class ClientConnection(_Fields, frozen=True):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/json"  # kube-scheduler's is protobuf, which is not spoken here
    qps: float | None = None  # None: no limit of our own
    burst: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 100


class ExtenderTls(_Fields, frozen=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ManagedResource(_Fields, frozen=True):
    name: Name
    ignored_by_scheduler: bool = False


class Extender(_Fields, frozen=True):
    url_prefix: Name
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTls | None = None
    http_timeout_seconds: Duration = field(default=5.0, name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(_Fields, frozen=True):
    api_version: str
    kind: str
    parallelism: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Percentage = 0  # 0: every node is judged
    pod_initial_backoff_seconds: Annotated[int, Meta(ge=1, le=2**63 - 1)] = 1
    pod_max_backoff_seconds: Annotated[int, Meta(ge=1, le=2**63 - 1)] = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
