# shellcheck shell=bash
# What builds for other C libraries and architectures, and makes and checks the wheel: installed from PyPI into target/tools,
# once. Sourced after places.sh.
TOOLS=$TARGET/tools
WANTED=(ziglang==0.17.1 cargo-zigbuild==0.24.1 maturin==1.16.0 auditwheel==6.8.2)
if [[ $(cat "$TOOLS/complete" 2>/dev/null) != "${WANTED[*]}" ]]; then
    say "installing ${WANTED[*]} into $TOOLS"
    if ! { python3 -m venv "$TOOLS" && "$TOOLS/bin/pip" install --quiet "${WANTED[@]}"; }; then
        fail "they cannot be installed. Remedy: see the message above; python3-venv and a way to PyPI are needed"
    fi
    echo "${WANTED[*]}" >"$TOOLS/complete"
fi
PATH=$TOOLS/bin:$PATH
# Else they would write into the home.
export CARGO_ZIGBUILD_CACHE_DIR=$TOOLS/cache ZIG_GLOBAL_CACHE_DIR=$TOOLS/cache/zig ZIG_LOCAL_CACHE_DIR=$TOOLS/cache/zig
export CARGO_PROFILE_RELEASE_STRIP=symbols

# has_target TARGET: Rust's standard library for that target is there, or was installed by rustup.
has_target() {
    [[ -d $(rustc --print target-libdir --target "$1") ]] && return
    command -v rustup >/dev/null && rustup target add "$1"
}
