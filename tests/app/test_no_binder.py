"""Where no plugin binds, one that tries is told so."""

import pytest

from lowtide.app.no_binder import NoBinder
from lowtide.testing import make_pod


async def test_no_plugin_binds() -> None:
    with pytest.raises(RuntimeError, match="in this mode no plugin binds default/pod to a"):
        await NoBinder().bind(make_pod(), "a")
    with pytest.raises(RuntimeError, match="in this mode no plugin binds volumes of default/pod"):
        await NoBinder().bind_volumes(make_pod(), "a", 1.0)
