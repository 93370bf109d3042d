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

# page HEADING [N]: the first lines of shell, or the Nth ones, below a heading of the install page.
page() {
    awk -v heading="$1" -v fence="$((2 * ${2:-1} - 1))" '/^#+ / {on = $0 ~ "^#+ " heading "$"} on && /^```/ {seen++; next} on && seen == fence' \
        "$ROOT/docs/install.md"
}
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
# completes [LINES]: bash, zsh and fish complete cosched's subcommands, after these lines and those of docs/install.md.
completes() {
    local first=${1:-:}$'\n' manual="Man pages and completions"
    says "_cosched" "${first}bash -c '. /usr/share/bash-completion/bash_completion
_completion_loader cosched; complete -p cosched'"
    says "_cosched" "${first}zsh -fc '$(page "$manual" 2)
autoload -U compinit; compinit -D -u; echo \$_comps[cosched]'"
    says "compare" "${first}fish -c '$(page "$manual" 3)
complete -C \"cosched comp\"'"
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
    # What the shells write when they start is no file of cosched.
    as_user "fish -c true; zsh -fc 'autoload -U compinit; compinit -D -u'"

    before=$(files)
    as_user "cd downloads; $(page "A tarball")"
    works
    completes
    as_user "$(page "What cosched itself has written")"
    as_user "$(page "The tarball")"
    gone "$before"

    environment="source environment/bin/activate"
    as_user "$environment; cd downloads; $(page "A Python wheel")"
    works "$environment"
    says "(0, 'hello" "$environment
python3 -c 'import cosched; [p] = cosched.run([\"echo hello\"]).programs; print((p.exit_status, p.stdout))'"
    as_user "$environment; $(page "Man pages and completions")"
    completes "$environment"
    as_user "$environment; $(page "What cosched itself has written")"
    as_user "$environment; $(page "The wheel")"
    as_user "$(page "Files of cosched manual")"
    gone "$before"
    tried+=("$release")
done
((${#tried[@]} > 0)) || fail "nothing could be tried"
say "tried on ${tried[*]}"
