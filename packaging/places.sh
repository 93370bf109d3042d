# shellcheck shell=bash
# Where the package is made. Sourced by the other scripts.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-$ROOT/target}")
PACKAGE=$TARGET/package
say() { echo "package: $*"; }
fail() {
    say "$*" >&2
    exit 1
}
command -v dpkg-deb >/dev/null || fail "not a Debian or Ubuntu: there is no dpkg-deb. docs/install.md tells other ways."
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml" | head -1)
DEB=$PACKAGE/cosched_${VERSION}_$(dpkg --print-architecture).deb
