#!/usr/bin/env bash
# Makes a tarball of cosched for any distribution: portable.sh x86_64, or portable.sh aarch64
#
# The executable is linked statically with musl, so it needs no C library. The library that is preloaded into programs
# has to be a shared one, for the C library of the programs: it is built first, for glibc 2.17 (2012) and newer.
set -euo pipefail
source "$(dirname "$0")/places.sh"
source "$ROOT/packaging/tools.sh"

architecture=$1
case $architecture in
    x86_64) tarball=$TARBALL ;;
    aarch64) tarball=$TARBALL_AARCH64 ;;
    *) fail "the architecture is $architecture, but must be x86_64 or aarch64" ;;
esac
static=$architecture-unknown-linux-musl
shared=$architecture-unknown-linux-gnu
for target in "$static" "$shared"; do
    has_target "$target" && continue
    missing="Rust's standard library for $target is missing. Remedy: rustup target add $target"
    [[ $architecture == x86_64 ]] && fail "$missing"
    say "skipped: the tarball for $architecture. $missing"
    exit 0
done
cd "$ROOT"
cargo zigbuild --release --locked -p cosched-hook --target "$shared.2.17"
export COSCHED_HOOK_LIBRARY=$TARGET/$shared/release/libcosched_hook.so
# Rust brings musl with it; only for another architecture a linker is missing.
build=build
[[ $architecture == $(uname -m) ]] || build=zigbuild
cargo $build --release --locked -p cosched --target "$static"
built=$TARGET/$static/release/cosched
! readelf --program-headers "$built" | grep INTERP || fail "$built is not static"

umask 022
work=$PACKAGE/work-$architecture
tree=$work/$(basename "$tarball" .tar.gz)
rm -rf "$work"
install -D "$built" -t "$tree/bin"
# For programs that are linked with it.
install -D -m 644 "$COSCHED_HOOK_LIBRARY" -t "$tree/lib/cosched"
install -D -m 644 crates/hook/include/cosched.h -t "$tree/include"
"$STATIC" manual "$tree/share"
gzip -9 --no-name "$tree"/share/man/man1/*.1
doc=$tree/share/doc/cosched
mkdir -p "$doc"
python3 -B packaging/pages.py install "$ROOT" "$doc"
python3 -B packaging/copyright.py "$ROOT" musl >"$doc/copyright"
install -m 644 LICENSE-* "packaging/cosched@.service" "$doc"
cat >"$tree/INSTALL" <<EOF
cosched $VERSION for Linux on ${architecture/_/-}: a static executable, which needs no library.$(
    [[ $architecture == x86_64 ]] || printf '\nIt was built on x86-64, and has never been run on this architecture.')

Install it for yourself, without root:

    mkdir -p ~/.local
    tar -C ~/.local --strip-components=1 --exclude=INSTALL -xzf $(basename "$tarball")

share/doc/cosched/docs/install.md says how to install it for all users, and how to remove it.
Licence: MIT or Apache-2.0, as you like; those of the libraries in it are in share/doc/cosched/copyright.
EOF
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$(basename "$tree")" \
    | gzip -9 --no-name >"$tarball"
rm -rf "$work"
say "$tarball, $(du -h "$tarball" | cut -f1)"
