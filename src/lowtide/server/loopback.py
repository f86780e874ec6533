"""Which names and addresses can only mean this machine; debug endpoints are served there only."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
