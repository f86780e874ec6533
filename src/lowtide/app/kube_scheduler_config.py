"""The KubeSchedulerConfiguration with which a stock kube-scheduler asks the extender, to be pasted.

`lowtide extender --print-kube-scheduler-config` prints it; the examples have it as files."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from lowtide.app.extender import BIND_SECONDS
from lowtide.app.extender_config import check_profiles
from lowtide.config.defaults import DEFAULT_SCHEDULER_NAME
from lowtide.config.errors import ConfigError
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.framework.profile import Profile

_SHORTEST_TIMEOUT_SECONDS = 2  # more than a binding takes
_TIMEOUT_IN_BUDGETS = 2  # the budget counts from the decoded request

_HEAD = """\
# For kube-scheduler's --config: it asks Lowtide (`lowtide extender`) too, for every pod.
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
_DEFAULT_SCHEDULER = """\
# kubeadm's file. Beside --config the flag --kubeconfig does not count.
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf
"""
_SECOND_SCHEDULER = """\
# A lease of its own, as the other kube-scheduler holds the usual one.
leaderElection:
  resourceName: {scheduler_name}
"""
_ALL_NODES = """\
# By default kube-scheduler searches a large cluster only until it has enough nodes, and shows an
# extender only those. Of 400 nodes, one of them labelled, it showed 188: the pod stayed pending.
percentageOfNodesToScore: 100
"""
_FILTER = """\
  filterVerb: filter
  # Before pods are evicted for another one: nodes that the plugins reject are left out.
  preemptVerb: preempt
"""
_PRIORITIZE = """\
  prioritizeVerb: prioritize
  # A node's score grows by what Lowtide gives it (0 to 10), times this, times 10: as much as by the
  # weights of Lowtide's profile. Each plugin of kube-scheduler adds up to 100 times its own weight,
  # which is 1 to 3.
  weight: {weight}
"""
_BIND = """\
  # Lowtide binds the pods instead of kube-scheduler (bind: true); it must be allowed to create
  # pods/binding. After {bind_seconds:g} s, at the latest, it answers what is known of a binding.
  bindVerb: bind
"""
_NAMES = """\
  # Names are sent, as Lowtide watches the nodes itself. With false whole Nodes are, 13 kB each,
  # there and back, and kube-scheduler's own plugins score those as if they were empty.
  nodeCacheCapable: true
"""
_IGNORABLE = """\
  # While Lowtide is away, pods are placed without it. With false they wait.
  ignorable: true
"""
_NOT_IGNORABLE = """\
  # Where no node is left, Lowtide answers with an Error (emptyResult: error). Were it ignorable,
  # kube-scheduler would ignore that, and place the pod on a node that was rejected. So pods wait
  # while Lowtide is away.
  ignorable: false
"""
_TIMEOUT = """\
  # Lowtide answers within {budgets}, if need be neutrally; this counts only
  # when it hangs.
  httpTimeout: {timeout_seconds}s
"""
_TLS = """\
  enableHTTPS: true
  tlsConfig:
    # Without it any certificate is believed.
    caFile: /etc/kubernetes/lowtide/ca.crt
"""
_CLIENT_CERTIFICATE = """\
    # Signed by what Lowtide has as --client-ca-file.
    certFile: /etc/kubernetes/lowtide/client.crt
    keyFile: /etc/kubernetes/lowtide/client.key
"""


def kube_scheduler_config(
    *,
    url_prefix: str,
    profiles: Mapping[str, Profile],
    settings: Mapping[str, ExtenderSettings],
    tls: bool,
    client_certificate: bool,
) -> str:
    """As YAML with comments. The extender answers by these profiles and settings, with TLS and
    asking for client certificates or not; ConfigError where that cannot work."""
    check_profiles(profiles)
    is_https = _is_https(url_prefix)
    if tls and not is_https:
        raise ConfigError(
            [f"the URL must begin with https://, as Lowtide serves HTTPS, and is {url_prefix}"]
        )
    parts = [
        _HEAD,
        _identity(list(profiles)),
        _ALL_NODES,
        "profiles:\n",
        *(f"- schedulerName: {_quoted(name)}\n" for name in profiles),
        "extenders:\n",
        f"- urlPrefix: {_quoted(url_prefix)}\n",
        *_verbs(profiles, settings.values()),
        *_manner(list(settings.values()), preempts=_filters(profiles)),
    ]
    if is_https:
        parts += [_TLS, _CLIENT_CERTIFICATE if client_certificate else ""]
    return "".join(parts)


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # urlsplit itself rejects ports above 65535, when asked for the port.
        is_right = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.query or parts.fragment or parts.username)
            and not any(letter.isspace() for letter in url)
        )
    except ValueError:
        is_right = False
    if not is_right:
        raise ConfigError(
            [
                "the URL must be such as http://lowtide-extender:8001/scheduler, with a port from "
                f"1 to 65535, and is {url}"
            ]
        )
    return parts.scheme == "https"


def _identity(scheduler_names: list[str]) -> str:
    if DEFAULT_SCHEDULER_NAME in scheduler_names:
        return _DEFAULT_SCHEDULER
    return _SECOND_SCHEDULER.format(scheduler_name=_quoted(scheduler_names[0]))


def _verbs(profiles: Mapping[str, Profile], settings: Iterable[ExtenderSettings]) -> Iterator[str]:
    """kube-scheduler asks in one way for all of its profiles."""
    weight = max(sum(scorer.weight for scorer in each.scorers) for each in profiles.values())
    if _filters(profiles):
        yield _FILTER
    if weight:
        yield _PRIORITIZE.format(weight=weight)
    if any(each.bind for each in settings):
        yield _BIND.format(bind_seconds=BIND_SECONDS)


def _filters(profiles: Mapping[str, Profile]) -> bool:
    return any(
        each.plugins_for_point("preFilter") or each.plugins_for_point("filter")
        for each in profiles.values()
    )


def _manner(settings: list[ExtenderSettings], *, preempts: bool) -> Iterator[str]:
    yield _NAMES
    yield _NOT_IGNORABLE if any(each.is_empty_an_error for each in settings) else _IGNORABLE
    longest_seconds = max(each.names_budget_seconds for each in settings)
    budgets = f"{longest_seconds * 1000:g} ms"
    if preempts:
        preempt_seconds = max(each.nodes_budget_seconds for each in settings)
        budgets += f" (preempt: {preempt_seconds * 1000:g} ms)"
        longest_seconds = max(longest_seconds, preempt_seconds)
    timeout_seconds = math.ceil(_TIMEOUT_IN_BUDGETS * longest_seconds)
    yield _TIMEOUT.format(
        budgets=budgets, timeout_seconds=max(_SHORTEST_TIMEOUT_SECONDS, timeout_seconds)
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
