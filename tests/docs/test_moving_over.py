"""docs/moving-over.md: the args that it prints are what the old ones mean, and those of today are
the defaults; the points that it tells come out of them."""

import re
from pathlib import Path

import msgspec
import numpy as np
import yaml

from lowtide.config.decoding import Decoder
from lowtide.framework.args import Spelling
from lowtide.framework.scores import scaled
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.plugins.network_traffic_spellings import older_args

PAGE = (Path(__file__).parents[2] / "docs" / "moving-over.md").read_text()
AS_OF_OLD, OF_TODAY = (
    yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
)
ADDRESS = "http://prometheus.monitoring:9090"


def test_the_old_args_mean_what_is_printed() -> None:
    old = {"prometheusAddress": ADDRESS, "networkInterface": "eth0", "timeRangeInMinutes": 3}
    meant = older_args(old, Spelling("kubescheduler.config.k8s.io/v1beta1", frozenset()))
    assert meant is not None
    assert meant.args == AS_OF_OLD


def test_with_the_address_alone_everything_else_is_as_the_table_says() -> None:
    decoded = Decoder().decode(NetworkTrafficArgs, OF_TODAY)
    one_by_one = re.findall(r"\| `((?:measure|direction|devices|scoring): [^`]+)` \|", PAGE)
    assert len(one_by_one) == 4
    for line in one_by_one:
        given = Decoder().decode(NetworkTrafficArgs, OF_TODAY | yaml.safe_load(line))
        assert msgspec.to_builtins(given) == msgspec.to_builtins(decoded)


def test_the_points_are_those_that_it_tells() -> None:
    measured, points = re.findall(r"to the point: ([\d, \nand]+) give ([\d, \nand]+)\.", PAGE)[0]
    raw = np.array(re.findall(r"\d+", measured), np.int64)
    wanted = list(map(int, re.findall(r"\d+", points)))
    assert scaled(raw, int(raw.max()), "lowest_best").tolist() == wanted
