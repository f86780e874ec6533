"""How a listening socket takes no new connections without losing one that it has taken already.

Closing it resets those that the kernel has accepted and we have not; `http.Server` uses this
before."""

import ctypes
import os
import socket
import struct
from contextlib import suppress
from typing import Final

# Of Linux on the machines that Kubernetes runs on; Python has no name for it.
_SO_ATTACH_FILTER: Final = 26
_FLAGS_OF_TCP_AT: Final = 13
_SYN: Final = 0x02
_EVERY_BYTE: Final = 0xFFFFFFFF


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jump_if_true", ctypes.c_uint8),
        ("jump_if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


def ignore_newcomers(listening: socket.socket) -> None:
    """The kernel drops what asks for a new connection, as if it had not arrived, and lets
    handshakes under way end. Where it cannot do that, nothing changes."""
    instructions = (_Instruction * 4)(
        _Instruction(0x30, 0, 0, _FLAGS_OF_TCP_AT),  # load that byte
        _Instruction(0x45, 0, 1, _SYN),  # go on where the flag is set, else skip one
        _Instruction(0x06, 0, 0, 0),  # keep nothing
        _Instruction(0x06, 0, 0, _EVERY_BYTE),  # keep all
    )
    program = struct.pack("HP", len(instructions), ctypes.addressof(instructions))
    # A copy: the sockets of a loop do not let everybody set options.
    with suppress(OSError), socket.socket(fileno=os.dup(listening.fileno())) as copy:
        copy.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
