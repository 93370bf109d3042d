#!/usr/bin/env bash
# Makes a Python wheel with the static executable of packaging/portable.sh, the module of python/, man pages, completions and pages for users.
set -euo pipefail
source "$(dirname "$0")/places.sh"
source "$ROOT/packaging/tools.sh"

export COSCHED_HOOK_LIBRARY=$TARGET/x86_64-unknown-linux-gnu/release/libcosched_hook.so
[[ -e $STATIC ]] || fail "$STATIC is missing. Remedy: make wheel"
# A copy, so that what is made for the wheel does not lie among the sources.
work=$PACKAGE/work-wheel
rm -rf "$work"
mkdir -p "$work"
cp -r "$ROOT/python" "$work/python"
sed -i "s|^manifest-path = .*|manifest-path = \"$ROOT/crates/cli/Cargo.toml\"|" "$work/python/pyproject.toml"
cp "$ROOT"/LICENSE-* "$work/python"
python3 -B "$ROOT/packaging/copyright.py" "$ROOT" musl >"$work/python/LICENSE-CRATES"
# What is below data/data comes into the environment itself, so that `man` finds the pages beside its bin.
share=$work/python/cosched.data/data/share
"$STATIC" manual "$share"
gzip -9 --no-name "$share"/man/man1/*.1
python3 -B "$ROOT/packaging/pages.py" install "$ROOT" "$share/doc/cosched"
rm -f "$PACKAGE"/cosched-*.whl
(cd "$work/python" && maturin build --release --locked --target x86_64-unknown-linux-musl --compatibility manylinux2014 --out "$PACKAGE")
rm -rf "$work"
made=$(wheel)
[[ -e $made ]] || fail "maturin made no wheel for x86-64"
# The name promises glibc 2.17 or newer.
found=$(auditwheel show "$made")
grep -Eq '"manylinux_2_(5|12|17)_x86_64"' <<<"$found" || fail "auditwheel does not agree with the wheel's name: $found"
say "ok: auditwheel agrees with the wheel's name"
say "$made, $(du -h "$made" | cut -f1)"
