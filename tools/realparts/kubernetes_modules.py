"""The go.mod by which a program of one version of Kubernetes is built, made of that version's own.

Called by parts for versions without a committed go.mod, and by the recorder; standard library only.
Nothing floats: a version of Kubernetes names the version of every module it is made of."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

from realparts.steps import MissingPart, Say, find_go

MODULE = "k8s.io/kubernetes"


def module_text(name: str, kubernetes: str, upstream: str) -> str:
    """A go.mod for a version; upstream is that version's own, with paths into its repository.

    Go ignores the replace lines of a dependency, so each is said again with a published version."""
    staged = re.findall(r"^\s*(k8s\.io/\S+) => \./staging/", upstream, re.MULTILINE)
    go = re.search(r"^go (\S+)$", upstream, re.MULTILINE)
    if not staged or go is None:
        raise MissingPart(
            f"the go.mod of {MODULE} v{kubernetes} has no staging modules; look at it"
        )
    published = "v0." + kubernetes.removeprefix("1.")
    lines = [
        f"module {name}",
        f"\ngo {go.group(1)}",
        f"\nrequire (\n\t{MODULE} v{kubernetes}\n)",
        "\nreplace (",
        *(f"\t{staged_name} => {staged_name} {published}" for staged_name in staged),
        ")\n",
    ]
    return "\n".join(lines)


def upstream_module_text(kubernetes: str, say: Say) -> str:
    command = [str(find_go(say)), "mod", "download", "-json", f"{MODULE}@v{kubernetes}"]
    with tempfile.TemporaryDirectory() as folder:  # outside of any module
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"Error": done.stderr.strip()}
    if "GoMod" not in answer:
        raise MissingPart(f"{MODULE} v{kubernetes} cannot be had: {answer.get('Error')}")
    return Path(answer["GoMod"]).read_text()
