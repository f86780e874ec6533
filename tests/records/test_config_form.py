import json
from typing import Any

from tests.records.recorded_run import CONFIG

from lowtide.app.registry import make_registry
from lowtide.config.load import load_config, load_default
from lowtide.framework.plugin import Binder
from lowtide.records.config_form import recorded_config

SECRET = "hunter2"


def test_default_is_written_out() -> None:
    data = recorded_config(load_default())
    loaded = load_config(json.dumps(data), file="recording")
    assert [each.scheduler_name for each in loaded.config.profiles] == ["lowtide"]


def test_nothing_secret_is_kept_and_the_same_plugins_are_built() -> None:
    address = f"http://me:{SECRET}@prometheus.example/?token={SECRET}"
    args: dict[str, Any] = {
        "prometheusAddress": address,
        "prometheus": {
            "addresses": [address, f"me:{SECRET}@other.example:9090"],
            "headers": {"X-Scope-OrgID": SECRET},
            "basicAuth": {"username": "me", "passwordFile": "/etc/password"},
        },
        "query": 'sum by (node) (rate(x{$devices,url=~"http://a?@b"}[$window]))',
    }
    config = {
        **CONFIG,
        "extenders": [
            {
                "urlPrefix": f"https://me:{SECRET}@extender.example/",
                "filterVerb": "filter",
                "enableHTTPS": True,
                "tlsConfig": {
                    "keyData": "aHVudGVyMg==",
                    "certData": "aHVudGVyMg==",
                    "insecure": True,
                },
            }
        ],
        "profiles": [
            {
                "schedulerName": "lowtide",
                "plugins": {"score": {"enabled": [{"name": "NetworkTraffic", "weight": 3}]}},
                "pluginConfig": [{"name": "NetworkTraffic", "args": args}],
            }
        ],
    }
    loaded = load_config(json.dumps(config), file="test")
    data = recorded_config(loaded)
    text = json.dumps(data)
    assert SECRET not in text
    assert "aHVudGVyMg" not in text
    assert data["profiles"][0]["pluginConfig"][0]["args"] == {
        "prometheusAddress": "http://prometheus.example/",
        "prometheus": {
            "addresses": ["http://prometheus.example/", "other.example:9090"],
            "headers": {"X-Scope-OrgID": "left-out"},
            "basicAuth": {"username": "me", "passwordFile": "/etc/password"},
        },
        "query": args["query"],
    }
    again = load_config(text, file="recording")
    built = make_registry({}).build(again, {Binder: None})
    assert list(built.profiles) == ["lowtide"]


def test_secrets_in_the_args_of_outsiders_are_known_by_their_names() -> None:
    args = {"apiToken": SECRET, "tokenFile": "/etc/token", "nested": [{"dbPassword": SECRET}]}
    profile = {"schedulerName": "lowtide", "pluginConfig": [{"name": "Mine", "args": args}]}
    loaded = load_config(json.dumps({**CONFIG, "profiles": [profile]}), file="test")
    assert recorded_config(loaded)["profiles"][0]["pluginConfig"][0]["args"] == {
        "apiToken": "left-out",
        "tokenFile": "/etc/token",
        "nested": [{"dbPassword": "left-out"}],
    }
