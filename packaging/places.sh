# shellcheck shell=bash
# Where packages are made, and with what. Sourced by the other scripts.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-$ROOT/target}")
export CARGO_TARGET_DIR=$TARGET
PACKAGE=$TARGET/package
say() { echo "package: $*"; }
fail() {
    say "$*" >&2
    exit 1
}
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml" | head -1)
# Only where there is dpkg.
DEB=$PACKAGE/cosched_${VERSION}_$(dpkg --print-architecture 2>/dev/null || true).deb
EXT_DEB=$PACKAGE/cosched-ext_${VERSION}_$(dpkg --print-architecture 2>/dev/null || true).deb
# The dates in packages are those of the last commit, so that the same sources give the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
# Runs on every Linux of x86-64, so it makes the man pages of all packages but Debian's.
STATIC=$TARGET/x86_64-unknown-linux-musl/release/cosched
TARBALL=$PACKAGE/cosched-$VERSION-x86_64-linux.tar.gz
# Nothing has been run on the other architecture, and the name says so.
TARBALL_AARCH64=$PACKAGE/cosched-$VERSION-aarch64-linux-untested.tar.gz
wheel() { echo "$PACKAGE/cosched-$VERSION-py3-none-"*x86_64*.whl; }
