"""What the image of Dockerfile holds, as a folder, where no container engine is at hand: Debian's
Python out of its packages, and Lowtide in an environment of its own. There is no shell in it.

`python tools/image_root.py FOLDER` builds it; needs apt-get, dpkg-deb, pip and root for chroot."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Python, and the libraries that its own modules and those of the dependencies are linked with.
PACKAGES = (
    *("python3.11", "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
    *("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libffi8", "libssl3", "libuuid1"),
    *("libbz2-1.0", "liblzma5", "libsqlite3-0", "libcrypt1", "libtirpc3", "libnsl2", "media-types"),
)
ENVIRONMENT = "opt/lowtide"
COMMAND = """\
#!/opt/lowtide/bin/python
import sys

from lowtide.__main__ import main

sys.exit(main())
"""


def build(folder: Path) -> None:
    packages = folder / "packages"
    packages.mkdir(parents=True)
    _run(["apt-get", "download", *PACKAGES], folder=packages)
    for package in packages.glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(package), str(folder)], folder=folder)
        package.unlink()
    packages.rmdir()
    for name in ("dev", "etc", "proc", "run", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "var").mkdir(exist_ok=True)
    (folder / "var" / "run").symlink_to("/run")
    make = ["/usr/bin/python3.11", "-m", "venv", "--without-pip", f"/{ENVIRONMENT}"]
    _run(["chroot", str(folder), *make], folder=folder)
    _install(folder / ENVIRONMENT)


def _install(environment: Path) -> None:
    modules = environment / "lib" / "python3.11" / "site-packages"
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *constraints, "--target", str(modules), str(ROOT)], folder=environment)
    command = environment / "bin" / "lowtide"
    command.write_text(COMMAND)
    command.chmod(0o755)


def _run(command: list[str], *, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
