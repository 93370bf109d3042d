#!/usr/bin/env bash
# Tries the tarball and the wheel in clean roots: installs each as docs/install.md says, uses it as an ordinary user,
# removes it as docs/install.md says, and looks whether anything is left.
#
#   packaging/try.sh [RELEASE...]   releases of Debian and Ubuntu; otherwise Debian 11 to 13, and Ubuntu 22.04
set -euo pipefail
source "$(dirname "$0")/places.sh"

made=$(wheel)
for file in "$TARBALL" "$made"; do
    [[ -e $file ]] || fail "$file is missing. Remedy: make package"
done
source "$ROOT/packaging/roots.sh"

# page HEADING: the first lines of shell below a heading of the install page.
page() { awk -v heading="$1" '/^#+ / {on = $0 ~ "^#+ " heading "$"} on && /^```/ {fence++; next} on && fence == 1' "$ROOT/docs/install.md"; }
# as_user LINES: runs lines of shell as an ordinary user of the root. ~/.local/bin is in PATH, as at a login.
as_user() {
    inside setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/home/user PATH="/home/user/.local/bin:/usr/bin:/bin" \
        bash -euc "cd; $1"
}
# says TEXT LINES: the lines succeed, and print that.
says() {
    local said
    said=$(as_user "$2" 2>&1) || fail "$release: '$2' failed: $said"
    [[ $said == *"$1"* ]] || fail "$release: '$2' says '$said', without '$1'"
    say "$release: ok: ${2##*$'\n'}"
}
# works [LINES]: cosched does, after these lines.
works() {
    local first=${1:-:}$'\n'
    says "cosched $VERSION" "${first}cosched --version"
    says "CPUs usable" "${first}cosched doctor"
    says "ok" "${first}cosched run -- sleep 0.1 ::: sleep 0.2"
    says "/cosched-run.1" "${first}man --where cosched-run"
    # The library that it unpacks can be loaded with this C library.
    says "connected 1" "${first}cosched run library.toml"
}
# gone BEFORE: no file is left that was not there before.
gone() {
    local left
    left=$(comm -13 <(echo "$1") <(files))
    [[ -z $left ]] || fail "$release: left behind: $left"
    say "$release: ok: removed, and nothing is left"
}

(($# > 0)) || set -- bullseye bookworm trixie jammy
tried=()
for release; do
    unpack "$release" || { say "skipped: $release"; continue; }
    inside useradd --create-home --uid 1000 user
    as_user "mkdir .cache .local downloads; python3 -m venv environment"
    cat >"$root/home/user/library.toml" <<'EOF'
[[program]]
command = ["python3", "-c", "import ctypes; print('connected', ctypes.CDLL(None).cosched_register())"]
malleable = true
EOF
    cp "$TARBALL" "$made" "$root/home/user/downloads"

    before=$(files)
    as_user "cd downloads; $(page "A tarball")"
    works
    says "_cosched" "cat ~/.local/share/bash-completion/completions/cosched"
    as_user "$(page "What cosched itself has written")"
    as_user "$(page "The tarball")"
    gone "$before"

    environment="source environment/bin/activate"
    as_user "$environment; cd downloads; $(page "A Python wheel")"
    works "$environment"
    says "(0, 'hello" "$environment
python3 -c 'import cosched; [p] = cosched.run([\"echo hello\"]).programs; print((p.exit_status, p.stdout))'"
    as_user "$environment; $(page "What cosched itself has written")"
    as_user "$environment; $(page "The wheel")"
    gone "$before"
    tried+=("$release")
done
((${#tried[@]} > 0)) || fail "nothing could be tried"
say "tried on ${tried[*]}"
