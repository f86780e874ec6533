"""The built-in plugins. BUILT_IN lists them in default order: name, class and default weight."""

from lowtide.framework.registry import BuiltIn
from lowtide.plugins.default_binder import DefaultBinder
from lowtide.plugins.default_preemption import DefaultPreemption
from lowtide.plugins.dynamic_resources import DynamicResources
from lowtide.plugins.image_locality import ImageLocality
from lowtide.plugins.inter_pod_affinity import InterPodAffinity
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_spellings import SNAKE_NAME, older_args
from lowtide.plugins.node_affinity import NodeAffinity
from lowtide.plugins.node_declared_features import NodeDeclaredFeatures
from lowtide.plugins.node_label import NodeLabel
from lowtide.plugins.node_name import NodeName
from lowtide.plugins.node_ports import NodePorts
from lowtide.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from lowtide.plugins.node_resources_fit import NodeResourcesFit
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.plugins.node_usage import NodeUsage
from lowtide.plugins.node_volume_limits import NodeVolumeLimits
from lowtide.plugins.pod_topology_spread import PodTopologySpread
from lowtide.plugins.priority_sort import PrioritySort
from lowtide.plugins.scheduling_gates import SchedulingGates
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.plugins.volume_binding import VolumeBinding
from lowtide.plugins.volume_restrictions import VolumeRestrictions
from lowtide.plugins.volume_zone import VolumeZone

_FILTER = ("preFilter", "filter")
_SCORE = ("preScore", "score")

BUILT_IN = (
    BuiltIn("SchedulingGates", SchedulingGates),
    BuiltIn("PrioritySort", PrioritySort),
    BuiltIn("NodeUnschedulable", NodeUnschedulable),
    BuiltIn("NodeName", NodeName),
    BuiltIn("TaintToleration", TaintToleration, 3, ("filter", *_SCORE)),
    BuiltIn("NodeAffinity", NodeAffinity, 2, (*_FILTER, *_SCORE), skips_at_pre_score=True),
    BuiltIn("NodePorts", NodePorts, 0, _FILTER),
    BuiltIn("NodeResourcesFit", NodeResourcesFit, 1, (*_FILTER, *_SCORE, "placementScore")),
    BuiltIn("VolumeRestrictions", VolumeRestrictions, 0, _FILTER),
    BuiltIn("NodeVolumeLimits", NodeVolumeLimits, 0, _FILTER),
    BuiltIn(
        "VolumeBinding",
        VolumeBinding,
        0,
        (*_FILTER, *_SCORE, "reserve", "preBind"),
        skips_at_pre_score=True,
    ),
    BuiltIn("VolumeZone", VolumeZone, 0, _FILTER),
    BuiltIn("PodTopologySpread", PodTopologySpread, 2, (*_FILTER, *_SCORE)),
    BuiltIn("InterPodAffinity", InterPodAffinity, 2, (*_FILTER, *_SCORE)),
    BuiltIn(
        "DynamicResources",
        DynamicResources,
        2,
        ("preEnqueue", *_FILTER, "postFilter", "score", "reserve", "preBind"),
    ),
    BuiltIn("DefaultPreemption", DefaultPreemption, 0, ("preEnqueue", "postFilter")),
    BuiltIn(
        "NodeResourcesBalancedAllocation",
        NodeResourcesBalancedAllocation,
        1,
        _SCORE,
        skips_at_pre_score=True,
    ),
    BuiltIn("ImageLocality", ImageLocality, 1, ("score",)),
    BuiltIn("DefaultBinder", DefaultBinder),
    BuiltIn("NodeDeclaredFeatures", NodeDeclaredFeatures, 0, _FILTER),
    BuiltIn(
        "NetworkTraffic",
        NetworkTraffic,
        is_default=False,
        aliases=(SNAKE_NAME,),
        older_args=older_args,
    ),
    BuiltIn("NodeUsage", NodeUsage, is_default=False),
    BuiltIn("NodeLabel", NodeLabel, is_default=False),
)
