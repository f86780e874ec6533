"""Where the API server is looked for."""

import pytest

from lowtide.cli.cluster_options import access_for
from lowtide.config.load import load_default
from lowtide.kube.kubeconfig import KubeconfigError


def test_a_user_without_a_home_is_told_where_a_kubeconfig_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in an image without accounts, where the user is a number."""
    for name in ("HOME", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", _no_such_user)
    with pytest.raises(KubeconfigError, match=r"/\.kube/config does not exist"):
        access_for(load_default().config, kubeconfig=None, master=None)


def _no_such_user(number: int) -> None:
    raise KeyError(number)
