"""Turns the text of a configuration file into a validated KubeSchedulerConfiguration.

The commands call `load_config` with --config and `load_default` without it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lowtide.config.decoding import Decoder
from lowtide.config.defaults import complete
from lowtide.config.errors import ConfigError, Path, Problem, value_text
from lowtide.config.manifests import GROUP, KIND, find_configuration
from lowtide.config.not_acted_on import warnings_about
from lowtide.config.types import KubeSchedulerConfiguration, Profile
from lowtide.config.validation import validate
from lowtide.config.yaml_document import Document

API_VERSION = f"{GROUP}/v1"
OWN_SCHEDULER_NAME = "lowtide"

_OLDER_VERSIONS = tuple(f"{GROUP}/{version}" for version in ("v1beta1", "v1beta2", "v1beta3"))


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration with its defaults, warnings, and the place of each field in the file."""

    config: KubeSchedulerConfiguration
    warnings: tuple[str, ...]
    document: Document

    @property
    def written_for(self) -> str:
        """The apiVersion in the file, which may be an older one."""
        return str(self.document.data.get("apiVersion", API_VERSION))

    def where(self, path: Path) -> str:
        """Format a place: `scheduler.yaml:12: profiles[0].pluginConfig[1].args`."""
        return self.document.where(path)

    def problem(self, path: Path, text: str) -> str:
        """Return the full sentence for a mistake that the caller found."""
        return self.document.problem(path, text)


def load_config(text: str, *, file: str) -> LoadedConfig:
    """Read a configuration. Raises ConfigError with all mistakes."""
    document = find_configuration(text, file=file)
    _raise_any(document, list(_header_problems(document.data)))
    decoder = Decoder()
    config = complete(decoder.decode(KubeSchedulerConfiguration, _in_v1(document)))
    problems = [*document.problems, *decoder.problems]
    already_wrong = {problem.path for problem in problems}
    problems += (problem for problem in validate(config) if problem.path not in already_wrong)
    _raise_any(document, problems)
    warnings = (*_version_warnings(document), *warnings_about(document))
    return LoadedConfig(config, warnings, document)


def load_default() -> LoadedConfig:
    """Return the configuration of a run without a file: kube-scheduler's defaults, except that the
    scheduler name is `lowtide`."""
    config = KubeSchedulerConfiguration(
        api_version=API_VERSION,
        kind=KIND,
        profiles=(Profile(scheduler_name=OWN_SCHEDULER_NAME),),
    )
    document = Document(
        file="built-in configuration", data={}, path=(), lines={}, block_lines={}, problems=()
    )
    return LoadedConfig(complete(config), (), document)


def _header_problems(data: dict[str, Any]) -> Iterator[Problem]:
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if api_version is None:
        yield Problem(("apiVersion",), f"is missing; write {API_VERSION}")
    elif api_version not in (API_VERSION, *_OLDER_VERSIONS):
        yield Problem(("apiVersion",), f"must be {API_VERSION}, not {value_text(api_version)}")
    if kind is None:
        yield Problem(("kind",), f"is missing; write {KIND}")
    elif kind != KIND:
        yield Problem(("kind",), f"must be {KIND}, not {value_text(kind)}")


def _in_v1(document: Document) -> Any:
    """Return the data as v1: fields that older versions share with v1 mean the same."""
    return {**document.data, "apiVersion": API_VERSION}


def _version_warnings(document: Document) -> Iterator[str]:
    api_version = document.data["apiVersion"]
    if api_version in _OLDER_VERSIONS:
        yield document.problem(
            ("apiVersion",), f"{api_version} is read as {API_VERSION}; write that"
        )


def _raise_any(document: Document, problems: list[Problem]) -> None:
    if not problems:
        return
    in_file_order = sorted(problems, key=lambda problem: document.line(problem.path))
    raise ConfigError([document.problem(problem.path, problem.text) for problem in in_file_order])
