"""What a user did wrong, or the world did, in one sentence on stderr; a bug keeps its traceback."""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lowtide.app.explain import ExplainError
from lowtide.app.scheduler import LeaseLostError
from lowtide.config.errors import ConfigError
from lowtide.extenders.client import ExtenderCallError
from lowtide.kube.errors import KubeError
from lowtide.kube.kubeconfig import KubeconfigError
from lowtide.records.explaining import UnknownNodeError
from lowtide.records.journal import JournalError
from lowtide.scenario.scenario import ScenarioError
from lowtide.server.errors import ServerError
from lowtide.telemetry.prometheus import PrometheusError

EXPECTED = (
    ConfigError,
    ExplainError,
    ExtenderCallError,
    JournalError,
    KubeError,
    KubeconfigError,
    LeaseLostError,
    PrometheusError,
    ScenarioError,
    ServerError,
    UnknownNodeError,
)

INTERRUPTED = 128 + signal.SIGINT


@contextmanager
def reported_in_one_sentence() -> Iterator[None]:
    try:
        yield
    except EXPECTED as error:
        for line in str(error).splitlines():
            print(f"lowtide: {line}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has seen enough.
        sys.stderr.close()
        sys.exit(1)
    except MemoryError:
        print("lowtide: the memory is not enough for this input", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"lowtide: the output cannot be written: {error.strerror}", file=sys.stderr)
        os._exit(1)  # what is left in the buffers cannot be written either
