"""Which file wins, how files are merged, and what a kubeconfig that cannot be used is told."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lowtide.kube.kubeconfig import (
    Access,
    Cluster,
    ExecPlugin,
    KubeconfigError,
    Pem,
    User,
    load_access,
    plain_access,
)

LAUGHS = "a0: &a0 [1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
)
V1 = "client.authentication.k8s.io/v1"


def config(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://x:1"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
    }
    return document | changes


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def load(tmp_path: Path, **given: Any) -> Access:
    arguments: dict[str, Any] = {
        "kubeconfig": None,
        "master": None,
        "environment": {},
        "home": tmp_path / "home",
        "account_directory": tmp_path / "account",
    }
    return load_access(**(arguments | given))


def load_file(tmp_path: Path, document: object) -> Access:
    return load(tmp_path, kubeconfig=str(write(tmp_path / "dir" / "file", document)))


IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def place_all(tmp_path: Path) -> dict[str, Any]:
    """Every source at once; tests take away what stands before the one they ask for."""
    write(tmp_path / "account" / "token", "t")
    write(tmp_path / "home" / ".kube" / "config", config({"server": "https://home"}))
    named = write(tmp_path / "named", config({"server": "https://named"}))
    flag = write(tmp_path / "flag", config({"server": "https://flag"}))
    return {"kubeconfig": str(flag), "environment": {**IN_CLUSTER, "KUBECONFIG": str(named)}}


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({}, "https://flag", id="takes the flag's file first"),
        pytest.param({"kubeconfig": None}, "https://10.0.0.1:443", id="then the pod's account"),
        pytest.param(
            {"kubeconfig": None, "account_directory": Path("/nonexistent")},
            "https://named",
            id="then $KUBECONFIG",
        ),
        pytest.param(
            {"kubeconfig": None, "environment": {}}, "https://home", id="then ~/.kube/config"
        ),
        pytest.param(
            {"master": "https://master"}, "https://master", id="takes the server from --master"
        ),
        pytest.param(
            {"master": "127.0.0.1:8080"}, "http://127.0.0.1:8080", id="reads a bare address"
        ),
    ],
)
def test_precedence(tmp_path: Path, changes: dict[str, Any], want: str) -> None:
    assert load(tmp_path, **(place_all(tmp_path) | changes)).cluster.server == want


def test_the_token_of_a_pod_is_not_shown_to_another_master(tmp_path: Path) -> None:
    write(tmp_path / "account" / "token", "t")
    access = load(tmp_path, master="https://other", environment=IN_CLUSTER)
    assert access == plain_access("https://other")


def test_the_account_of_a_pod(tmp_path: Path) -> None:
    account = tmp_path / "account"
    for name, text in (("token", "t"), ("ca.crt", "ca"), ("namespace", "apps\n")):
        write(account / name, text)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert load(tmp_path, environment=environment) == Access(
        Cluster("https://[fd00::1]:443", certificate_authority=Pem(file=account / "ca.crt")),
        User(token_file=account / "token"),
        "apps",
        f"the service account in {account}",
    )


def test_all_fields(tmp_path: Path) -> None:
    document = config(
        {
            "server": "https://x:1/base/",
            "certificate-authority": "ca.crt",
            "tls-server-name": "name",
            "proxy-url": "http://proxy:3128",
            "insecure-skip-tls-verify": True,
            "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}],
        },
        {
            "client-certificate-data": "Q0VSVA==",
            "client-certificate": "ignored",
            "client-key": "sub/key",
            "token": "t",
            "tokenFile": "/abs/token",
            "username": "u",
            "password": "p",
            "exec": {
                "command": "./bin/login",
                "args": ["get", "token"],
                "env": [{"name": "A", "value": "b"}],
                "apiVersion": V1,
                "provideClusterInfo": True,
                "interactiveMode": "IfAvailable",
                "installHint": "Get it.",
            },
        },
    )
    document["contexts"][0]["context"]["namespace"] = "apps"
    directory = (tmp_path / "dir").resolve()
    assert load_file(tmp_path, document) == Access(
        Cluster(
            "https://x:1/base",
            certificate_authority=Pem(file=directory / "ca.crt"),
            is_verified=False,
            tls_server_name="name",
            proxy_url="http://proxy:3128",
            exec_config={"a": 1},
        ),
        User(
            client_certificate=Pem(data=b"CERT"),
            client_key=Pem(file=directory / "sub" / "key"),
            token="t",
            token_file=Path("/abs/token"),
            username="u",
            password="p",
            exec_plugin=ExecPlugin(
                str(directory / "bin" / "login"),
                ("get", "token"),
                {"A": "b"},
                V1,
                gets_cluster=True,
                install_hint="Get it.",
            ),
        ),
        "apps",
        str(tmp_path / "dir" / "file"),
    )


def test_a_plugin_without_a_slash_is_looked_for_on_the_path(tmp_path: Path) -> None:
    plugin = {"command": "login", "apiVersion": V1}
    assert load_file(tmp_path, config(user={"exec": plugin})).user.exec_plugin == ExecPlugin(
        "login"
    )


def test_of_several_files_the_first_that_names_a_thing_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "one", {"users": [{"name": "u", "user": {"tokenFile": "t"}}]})
    second = write(tmp_path / "b" / "two", config(user={"token": "second"}))
    third = write(tmp_path / "c" / "three", config({"server": "https://third"}))
    paths = f"{first}:{tmp_path}/missing:{second}:{third}"
    access = load(tmp_path, environment={"KUBECONFIG": paths})
    assert access.cluster == Cluster("https://x:1")
    assert access.user == User(token_file=(tmp_path / "a").resolve() / "t")


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(
            "a: [",
            "{file}:1: is not valid YAML: "
            "did not find expected node content|expected the node content",
            id="is no YAML",
        ),
        pytest.param(
            "clusters: " + "[" * 5000,
            "{file}:1: is nested too deeply or holds more than 100000 values",
            id="is nested deeply",
        ),
        pytest.param(
            LAUGHS + "clusters: *a8\n",
            "{file}:1: is nested too deeply or holds more than 100000 values",
            id="has aliases that multiply",
        ),
        pytest.param("a: 1\n---\nb: 2\n", "{file} holds 2 documents", id="is two documents"),
        pytest.param(
            "users: []\nusers: []\n",
            "{file}:1: users: is given again on line 2; keep one",
            id="has a key twice",
        ),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": V1, "args": 7}}),
            "{file}: user 'u' has an exec plugin whose args are the integer 7; they must be a list",
            id="has an exec plugin with arguments that are no list",
        ),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": V1, "env": ["A=b"]}}),
            "{file}: user 'u' has an exec plugin whose env holds the string \"A=b\"; "
            "each must have a name and a value",
            id="has an exec plugin with an environment of strings",
        ),
        pytest.param("- 1", "{file} holds a list; a kubeconfig is a mapping", id="is a list"),
        pytest.param(
            config() | {"current-context": ""},
            "{file}: current-context is not set; set it to one of the contexts (here)",
            id="has no current context",
        ),
        pytest.param(
            config() | {"current-context": "there"},
            "{file}: there is no context named 'there'; the contexts are: here",
            id="names a missing context",
        ),
        pytest.param(
            config(users=[]),
            "{file}: there is no user named 'u'; the users are: none",
            id="names a missing user",
        ),
        pytest.param(
            config({"server": "x"}) | {"clusters": "x"},
            '{file}: clusters is the string "x"; it must be a list',
            id="has clusters that are no list",
        ),
        pytest.param(
            config({"server": "ftp://x"}),
            "{file}: cluster 'c' has the server 'ftp://x'; it must be a url such as",
            id="has a server that is no web address",
        ),
        pytest.param(
            config({"proxy-url": "socks5://x"}),
            "{file}: cluster 'c' has the proxy-url 'socks5://x'; it must be a url of http or",
            id="has a proxy we cannot use",
        ),
        pytest.param(
            config({"proxy-url": "http://user:secret@x:99999"}),
            "{file}: cluster 'c' has the proxy-url 'http://x:99999'; it must be a url of http or",
            id="has a proxy with a port that is none",
        ),
        pytest.param(
            config({"server": "https://x:99999"}),
            "{file}: cluster 'c' has the server 'https://x:99999'; it must be a url such as",
            id="has a server with a port that is none",
        ),
        pytest.param(
            config({"server": "https://[::1"}),
            "{file}: cluster 'c' has the server 'https://[::1'; it must be a url such as",
            id="has a server with half an address",
        ),
        pytest.param(
            config({"server": "https://"}),
            "{file}: cluster 'c' has the server 'https://'; it must be a url such as",
            id="has a server without a host",
        ),
        pytest.param(
            config({"server": "https://user:secret@x:1"}),
            "{file}: cluster 'c' has a user in the server 'https://x:1'; users and passwords",
            id="has a password in the server",
        ),
        pytest.param(
            config({"certificate-authority-data": "***"}),
            "{file}: certificate-authority-data of 'c' is not base64",
            id="has data that is not base64",
        ),
        pytest.param(
            config(user={"token": 5}),
            "{file}: token of 'u' must be a string; put the value in quotes",
            id="has a token that is a number",
        ),
        pytest.param(
            config(user={"client-certificate": "x"}),
            "{file}: user 'u' has no client-key; certificate and key go together",
            id="has a certificate without its key",
        ),
        pytest.param(
            config(user={"auth-provider": {"name": "gcp"}}),
            "{file}: user 'u' uses the auth-provider 'gcp', which Kubernetes no longer has; "
            "use an exec plugin",
            id="uses an auth-provider",
        ),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": "v0"}}),
            "{file}: user 'u' has an exec plugin with apiVersion 'v0'; it must be",
            id="has an exec plugin of an unknown version",
        ),
        pytest.param(
            config(user={"exec": {"apiVersion": V1}}),
            "{file}: user 'u' has an exec plugin without a command",
            id="has an exec plugin without a command",
        ),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Always"}}),
            "{file}: user 'u' has an exec plugin with interactiveMode Always",
            id="has an exec plugin that needs a terminal",
        ),
        pytest.param(
            config(user={"token": "two\nlines"}),
            "{file}: token of user 'u' has line breaks or other characters that cannot be sent; "
            "it must be one word",
            id="has a token with a line break",
        ),
        pytest.param(
            config(user={"username": "two\nlines", "password": "p"}),
            "{file}: username of user 'u' has line breaks or other characters that cannot be "
            "sent; it must be one line",
            id="has a user name with a line break",
        ),
        pytest.param("#" * (17 << 20), "{file} cannot be read: more than 16 MiB", id="is large"),
    ],
)
def test_rejected_when_the_file(tmp_path: Path, document: object, want: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load_file(tmp_path, document)
    starts = [part.format(file=tmp_path / "dir" / "file") for part in want.split("|")]
    message = str(caught.value)
    assert message.startswith(starts[0]) or starts[-1] in message
    assert "\n" not in message


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"/gone cannot be read: No such file or directory$"):
        load(tmp_path, kubeconfig="/gone")


def test_nothing_at_all_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load(tmp_path)
    assert str(caught.value) == (
        f"No API server is known: --kubeconfig and $KUBECONFIG are not set, "
        f"{tmp_path}/home/.kube/config does not exist, and this is not a pod with a service "
        f"account in {tmp_path}/account"
    )
