"""Writes the files under deploy/ and the table in docs/deploying.md that are made of others:
permissions, how kube-scheduler asks, alerts in place of it, and one rendered file for each mode.
Run by `make deploy-files`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lowtide.app.kube_scheduler_config import kube_scheduler_config
from lowtide.app.no_binder import NoBinder
from lowtide.app.permissions import Mode, Needs, every_permission, needs_of, permissions_of
from lowtide.app.registry import make_registry, read_config
from lowtide.app.roles import Account, manifest_of, markdown_of
from lowtide.framework.plugin import Binder
from realparts.parts import obtain

ROOT = Path(__file__).resolve().parent.parent
MADE = "# Made by `make deploy-files`.\n"
SCHEDULER = "scheduler"
# By folder, where kube-scheduler asks.
EXTENDERS = {
    "extender": "https://127.0.0.1:8001/scheduler",
    "extender-standalone": "https://lowtide-extender.kube-system.svc:8001/scheduler",
}
RENDERED = (SCHEDULER, *EXTENDERS, "monitoring", "static-pod/monitoring")
TABLE_BEGINS = "<!-- made by `make deploy-files` -->\n"
TABLE_ENDS = "<!-- end -->\n"


def generated(root: Path) -> Iterator[tuple[Path, str]]:
    """Each file and its text, but for those that are rendered out of others."""
    deploy = root / "deploy"
    scheduler = _needs(deploy / "scheduler" / "scheduler-config.yaml")
    yield deploy / "scheduler" / "rbac.yaml", _permissions(Mode.SCHEDULER, scheduler)
    for folder, url in EXTENDERS.items():
        config_file = deploy / folder / "extender-config.yaml"
        yield deploy / folder / "rbac.yaml", _permissions(Mode.EXTENDER, _needs(config_file))
        yield deploy / folder / "kube-scheduler-config.yaml", _asking(config_file, url)
    extender = _needs(deploy / "extender" / "extender-config.yaml")
    rule = (deploy / "monitoring" / "prometheus-rule.yaml").read_text()
    yield (
        deploy / "static-pod" / "monitoring" / "prometheus-rule.yaml",
        _default_scheduler_too(rule),
    )
    templates = deploy / "helm" / "lowtide" / "templates"
    yield templates / "rbac.yaml", _template(scheduler, extender)
    yield root / "docs" / "deploying.md", _with_table(root / "docs" / "deploying.md")


def rendered(root: Path, kubectl: Path) -> Iterator[tuple[Path, str]]:
    for name in RENDERED:
        command = [str(kubectl), "kustomize", str(root / "deploy" / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        file = f"{name.replace('/', '-')}.yaml"
        yield root / "deploy" / "rendered" / file, MADE + done.stdout


def _needs(config_file: Path) -> Needs:
    loaded = read_config(config_file)
    built = make_registry({}).build(loaded, {Binder: NoBinder()})
    return needs_of(loaded.config, built.profiles, built.extender_settings)


def _permissions(mode: Mode, needs: Needs) -> str:
    name = f"lowtide-{mode}"
    return MADE + manifest_of(permissions_of(mode, needs), Account("kube-system", name, name))


def _template(scheduler: Needs, extender: Needs) -> str:
    """The chart's: with its names, and what a user adds to the ClusterRole."""
    name = '{{ include "lowtide.name" . }}'
    account = Account("{{ .Release.Namespace }}", name, name)
    lines = [MADE.rstrip(), '{{- if eq .Values.mode "scheduler" }}']
    lines += [_with_extra_rules(manifest_of(permissions_of(Mode.SCHEDULER, scheduler), account))]
    lines += ["{{- else }}"]
    lines += [_with_extra_rules(manifest_of(permissions_of(Mode.EXTENDER, extender), account))]
    lines += ["{{- end }}\n"]
    namespace, lease = scheduler.lease
    own_namespace = 'namespace: {{ include "lowtide.leaseNamespace" . }}'
    text = "\n".join(lines).replace(f"namespace: {namespace}", own_namespace)
    return text.replace(f'["{lease}"]', '["{{ include "lowtide.lease" . }}"]')


def _with_extra_rules(manifest: str) -> str:
    role, separator, others = manifest.partition("---\n")
    extra = "{{- with .Values.extraRules }}\n{{ toYaml . }}\n{{- end }}\n"
    return (role + extra + separator + others).rstrip()


def _default_scheduler_too(rule: str) -> str:
    """The alerts, where also pods that name no scheduler are Lowtide's."""
    return MADE + rule.replace('name=~"lowtide.*"', 'name=~"default-scheduler|lowtide.*"')


def _asking(config_file: Path, url: str) -> str:
    loaded = read_config(config_file)
    built = make_registry({}).build(loaded, {Binder: NoBinder()})
    printed = kube_scheduler_config(
        url_prefix=url,
        profiles=built.profiles,
        settings=built.extender_settings,
        tls=True,
        client_certificate=False,
    )
    if "127.0.0.1" in url:
        # The certificate is one of its own, made at the start: there is no CA to name.
        printed = printed.partition("  tlsConfig:\n")[0]
    return MADE + printed


def _with_table(page: Path) -> str:
    before, _, rest = page.read_text().partition(TABLE_BEGINS)
    _, _, after = rest.partition(TABLE_ENDS)
    return before + TABLE_BEGINS + markdown_of(every_permission()) + TABLE_ENDS + after


def main() -> int:
    for file, text in generated(ROOT):
        file.write_text(text)
    for file, text in rendered(ROOT, obtain("kubectl")["kubectl"]):
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
