"""How Debian's Chromium is started by the browser tests and by `make bench ONLY=page`."""

SWITCHES = (
    # Chromium's sandbox needs permissions that containers and root do not have; it sees our page
    # only.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # No name is looked up, whatever asks for it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
