from lowtide.framework.plugin import Nodes, Pod
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.request import TrafficRequest
from lowtide.readings.usage import UsageRequest
from lowtide.records.recording_header import Header, Source, described, sources_by_place, sources_of
from lowtide.testing import make_profile

SECRET = "hunter2"


def request(address: str) -> TrafficRequest:
    access = PrometheusAccess(addresses=(address,), headers=(("X-Token", SECRET),))
    return TrafficRequest(access=access)


class Reads:
    def __init__(self, name: str, *readings: object) -> None:
        self.name = name
        self.readings = readings

    def score(self, pod: Pod, nodes: Nodes) -> None:
        return None


ONE, TWO, USAGE = request("http://one"), request("http://two"), UsageRequest()


def test_sources_are_each_once_in_the_order_of_profiles_and_plugins() -> None:
    profiles = [
        make_profile([Reads("A", TWO), Reads("B", USAGE, ONE)]),
        make_profile([Reads("A", ONE, TWO)]),
    ]
    assert sources_of(profiles) == (TWO, USAGE, ONE)


def test_words_for_a_source_have_no_secrets() -> None:
    told = described(request(f"http://me:{SECRET}@one"), with_words=True)
    assert told.type == "TrafficRequest"
    assert "http://one" in told.description
    assert SECRET not in told.description
    assert described(ONE, with_words=False) == Source("TrafficRequest", "")


def test_sources_of_a_replay_stand_for_those_of_their_type_in_order() -> None:
    recorded = [Source(each, "") for each in ("TrafficRequest", "UsageRequest", "TrafficRequest")]
    header = Header(sources=recorded)
    assert sources_by_place(header, [ONE, TWO, USAGE]) == [ONE, USAGE, TWO]
    assert sources_by_place(header, [USAGE, TWO]) == [TWO, USAGE, None]
