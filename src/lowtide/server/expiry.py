"""When a server's certificate ends. `certificate` asks it of each that it loads."""

import ssl
from pathlib import Path

_HAS_EXPIRED = 10  # OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED


def why_renew(
    serving: ssl.SSLContext, certificate: Path, *, now: float, ahead_seconds: float
) -> str | None:
    """None where the certificate is good for that long, or nobody can tell.

    Python reads no dates out of files, but tells those of a peer: so the context is asked as a
    client would ask it, one that trusts nothing but this file."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        client.load_verify_locations(certificate)
        shown = _shown_to(client, serving)
    except ssl.SSLCertVerificationError as failure:
        return "has expired" if failure.verify_code == _HAS_EXPIRED else None
    except OSError:
        return None
    ends_at_text = str(shown["notAfter"])
    is_near = ssl.cert_time_to_seconds(ends_at_text) - now < ahead_seconds
    return f"ends at {ends_at_text}" if is_near else None


def _shown_to(client: ssl.SSLContext, serving: ssl.SSLContext) -> dict[str, object]:
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server)
    answering = serving.wrap_bio(to_server, to_client, server_side=True)
    while not _has_shaken(asking):
        _has_shaken(answering)
    return dict(asking.getpeercert() or {})


def _has_shaken(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
