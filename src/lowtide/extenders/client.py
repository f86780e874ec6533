"""Asks one extender over HTTP, as kube-scheduler does: one POST, no retry, JSON in Go's spelling.

Made by `asking` for each extender of the configuration."""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from lowtide.config.types import Extender, ExtenderTls
from lowtide.framework.plugin import Eviction
from lowtide.input_limits import Intake, TooLargeError, read_file
from lowtide.objects.extender import (
    BindingArgs,
    BindingResult,
    ExtenderArgs,
    FilterResult,
    HostPriority,
    MetaPod,
    NodeList,
    NodesNamed,
    PreemptionArgs,
    PreemptionResult,
    Victims,
    WordsDecoder,
)
from lowtide.objects.pod import Pod
from lowtide.pem_files import load_pair
from lowtide.scheduler.extending import Filtered, Preempted

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_FILTERED = WordsDecoder(FilterResult[NodesNamed])
_PRIORITIES = WordsDecoder(list[HostPriority])
_PREEMPTED = WordsDecoder(PreemptionResult)
_BOUND = WordsDecoder(BindingResult)


class ExtenderCallError(Exception):
    """An extender could not be asked, or answered something that cannot be used."""


class ExtenderClient:
    """`pod` and `nodes` are handed in whole, as the API server spells them."""

    def __init__(self, extender: Extender, bind_connect_seconds: float | None = None) -> None:
        self.extender = extender
        self._bind_connect_seconds = bind_connect_seconds
        self._url = extender.url_prefix.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self.intake = Intake()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=tls_context(self.extender))
        self._session = aiohttp.ClientSession(connector=connector)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def filter(self, pod: msgspec.Raw, nodes: Mapping[str, msgspec.Raw]) -> Filtered:
        """`nodes` are those that are left, by name."""
        said = await self._post(self.extender.filter_verb, self._args(pod, nodes), _FILTERED)
        self._reject_error(said)
        if self.extender.node_cache_capable and said.node_names is not None:
            kept = said.node_names
        else:
            listed = said.nodes or NodesNamed()
            kept = [node.metadata.name for node in listed.items or ()]
        for name in kept:
            if name not in nodes:
                raise ExtenderCallError(
                    f'extender "{self._url}" claims a filtered node "{name}" '
                    "which is not found in the input node list"
                )
        return Filtered(
            tuple(kept), said.failed_nodes or {}, said.failed_and_unresolvable_nodes or {}
        )

    async def priorities(
        self, pod: msgspec.Raw, nodes: Mapping[str, msgspec.Raw]
    ) -> dict[str, int]:
        said = await self._post(self.extender.prioritize_verb, self._args(pod, nodes), _PRIORITIES)
        return {each.host: each.score for each in said if each.host}

    async def preempt(
        self,
        pod: msgspec.Raw,
        evictions: Sequence[Eviction],
        victims: Mapping[str, msgspec.Raw],
    ) -> Preempted:
        """`victims` are the pods of these evictions by uid, whole."""
        said = await self._post(
            self.extender.preempt_verb, self._preemption_args(pod, evictions, victims), _PREEMPTED
        )
        agreed = said.node_name_to_meta_victims or {}
        return Preempted(
            {
                name: (tuple(each.uid for each in found.pods or ()), found.num_pdb_violations)
                for name, given in agreed.items()
                for found in [given or Victims[MetaPod]()]
            }
        )

    async def bind(self, pod: Pod, node_name: str) -> None:
        """ExtenderCallError when the pod is not bound."""
        args = BindingArgs(pod.name, pod.namespace, pod.uid, node_name)
        said = await self._post(
            self.extender.bind_verb, args, _BOUND, connect_seconds=self._bind_connect_seconds
        )
        self._reject_error(said)

    def _args(
        self, pod: msgspec.Raw, nodes: Mapping[str, msgspec.Raw]
    ) -> ExtenderArgs[msgspec.Raw]:
        if self.extender.node_cache_capable:
            return ExtenderArgs(pod=pod, node_names=tuple(nodes))
        return ExtenderArgs(pod=pod, nodes=NodeList(items=tuple(nodes.values())))

    def _preemption_args(
        self, pod: msgspec.Raw, evictions: Sequence[Eviction], whole: Mapping[str, msgspec.Raw]
    ) -> PreemptionArgs[msgspec.Raw, msgspec.Raw]:
        if self.extender.node_cache_capable:
            brief = {
                each.node_name: Victims(
                    [MetaPod(victim.uid) for victim in each.victims], each.budget_violations
                )
                for each in evictions
            }
            return PreemptionArgs(pod, node_name_to_meta_victims=brief)
        by_node = {
            each.node_name: Victims(
                [whole[victim.uid] for victim in each.victims if victim.uid in whole],
                each.budget_violations,
            )
            for each in evictions
        }
        return PreemptionArgs(pod, node_name_to_victims=by_node)

    async def _post(
        self,
        verb: str,
        args: Any,
        decoder: WordsDecoder[T],
        *,
        connect_seconds: float | None = None,
    ) -> T:
        body = await self._answer(verb, args, connect_seconds)
        try:
            return decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            url = f"{self._url}/{verb}"
            raise ExtenderCallError(
                f"the extender at URL {url} answered what cannot be read: {error}"
            ) from None

    async def _answer(self, verb: str, args: Any, connect_seconds: float | None) -> bytes:
        assert self._session is not None
        url = f"{self._url}/{verb}"
        seconds = self.extender.http_timeout_seconds
        try:
            async with self._session.post(
                url,
                data=_encode(args),
                headers={"Content-Type": "application/json"},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds, connect=connect_seconds),
            ) as response:
                body = await self.intake.read(response)
        except aiohttp.ConnectionTimeoutError:
            raise ExtenderCallError(
                f"the extender at URL {url} is not reached within {connect_seconds or seconds:g} s"
            ) from None
        except TimeoutError:
            raise ExtenderCallError(
                f"no answer from the extender at URL {url} within {seconds:g} s"
            ) from None
        except TooLargeError as error:
            raise ExtenderCallError(
                f"the extender at URL {url} answered with {error}; it should name nodes instead of "
                "sending them (nodeCacheCapable)"
            ) from None
        except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
            raise ExtenderCallError(
                f"the extender at URL {url} cannot be reached: {str(error) or type(error).__name__}"
            ) from None
        if response.status != 200:
            raise ExtenderCallError(
                f"failed {verb} with extender at URL {url}, code {response.status}"
            )
        return body

    def _reject_error(self, said: FilterResult[NodesNamed] | BindingResult) -> None:
        if said.error:
            raise ExtenderCallError(said.error)


def tls_context(extender: Extender) -> ssl.SSLContext | bool:
    """As kube-scheduler takes it: `enableHTTPS` without a CA means that nobody is checked, and
    data wins over files. ExtenderCallError when a file cannot be used."""
    tls = extender.tls_config
    is_given_ca = tls is not None and bool(tls.ca_data or tls.ca_file)
    if tls is None and not extender.enable_https:
        return True
    context = ssl.create_default_context()
    try:
        if is_given_ca and tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(
                cadata=(tls.ca_data or read_file(Path(tls.ca_file))).decode()
            )
        if (tls is not None and tls.insecure) or (extender.enable_https and not is_given_ca):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls is not None and (tls.cert_data or tls.cert_file):
            _load_certificate(context, tls)
    except (OSError, ValueError) as error:
        files = [] if tls is None else [tls.ca_file, tls.cert_file, tls.key_file]
        named = ", ".join(file for file in files if file)
        raise ExtenderCallError(
            f"the TLS files {named} of the extender {extender.url_prefix} cannot be used: {error}"
        ) from None
    return context


def _load_certificate(context: ssl.SSLContext, tls: ExtenderTls) -> None:
    certificate = tls.cert_data or read_file(Path(tls.cert_file))
    key = tls.key_data or (read_file(Path(tls.key_file)) if tls.key_file else certificate)
    load_pair(context, certificate, key)
