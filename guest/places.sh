# shellcheck shell=bash
# Where the parts of the guests are. Sourced by the other scripts.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-$ROOT/target}")
GUEST=$TARGET/guest
# Where this machine has its own packages from.
MIRROR=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | head -1)
KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
