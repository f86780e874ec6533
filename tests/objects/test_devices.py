"""DeviceClass: which resources its devices serve."""

import msgspec
import pytest

from lowtide.objects.devices import DeviceClass


@pytest.mark.parametrize(
    ("resource", "is_served"),
    [
        pytest.param("example.com/gpu", True, id="serves the resource that it names"),
        pytest.param("deviceclass.resource.kubernetes.io/c", True, id="serves one called after it"),
        pytest.param("deviceclass.resource.kubernetes.io/d", False, id="leaves another's alone"),
        pytest.param("example.com/tpu", False, id="serves nothing else"),
    ],
)
def test_serves(resource: str, is_served: bool) -> None:
    given = {"metadata": {"name": "c"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    assert msgspec.convert(given, DeviceClass).serves(resource) is is_served
