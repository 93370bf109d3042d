# shellcheck shell=bash
# Where the parts of the guests are. Sourced by the other scripts.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-$ROOT/target}")
GUEST=$TARGET/guest
MIRROR=http://deb.debian.org/debian
KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
