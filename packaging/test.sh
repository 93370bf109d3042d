#!/usr/bin/env bash
# Tries the package: is it well made, does it work in a Debian that has nothing else, and does it leave nothing behind?
#
# The clean root is of the release that the package was built on, since it needs that one's C library.
set -euo pipefail
source "$(dirname "$0")/places.sh"

[[ -e $DEB ]] || fail "$DEB is missing. Remedy: make package"
[[ -e $EXT_DEB ]] || fail "$EXT_DEB is missing. Remedy: make package"
source "$ROOT/packaging/roots.sh"

lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$DEB" "$EXT_DEB"
say "ok: lintian finds no error, and warns of nothing"
# The libraries that cosched-ext needs; all else is made for every root.
INCLUDED+=,$(dpkg-deb --field "$EXT_DEB" Depends | sed 's/([^)]*)//g; s/ //g; s/^cosched,//')

unpack "$(. /etc/os-release && echo "$VERSION_CODENAME")" || fail "there is no clean root"

before=$(files)
cp "$DEB" "$root/cosched.deb"
inside dpkg --install /cosched.deb >/dev/null
rm "$root/cosched.deb"
[[ $(files) != "$before" ]] || fail "nothing was installed"
say "ok: installed"
expect "cosched $VERSION" cosched --version
expect "ok" cosched run -- true ::: true
expect '"schema":"cosched-run/3"' cosched run --json -- true ::: true
expect "ok" setpriv --reuid 65534 --regid 65534 --clear-groups cosched run -- true ::: true
expect "level" cosched doctor --json
status=0
inside cosched run -- true ::: false >/dev/null 2>&1 || status=$?
((status == 1)) || fail "a program failed, and the exit status is $status"
say "ok: cosched run -- true ::: false ends with 1"
# A run of a malleable program unpacks the library, for root and for a user without a home.
cat >"$root/malleable.toml" <<'EOF'
[[program]]
command = ["sh", "-c", "echo $LD_PRELOAD"]
malleable = true
EOF
expect "/var/cache/cosched/libcosched_hook-" cosched run /malleable.toml
expect "/tmp/cosched-65534/libcosched_hook-" setpriv --reuid 65534 --regid 65534 --clear-groups cosched run /malleable.toml
rm "$root/malleable.toml"
expect "/cosched-run.1" man --where cosched-run
for file in bash-completion/completions/cosched doc/cosched/copyright; do
    [[ -s $root/usr/share/$file ]] || fail "/usr/share/$file is missing"
done
# What it says of itself: whether the scheduler is possible depends on this machine's kernel.
loader=/usr/libexec/cosched/cosched-ext
without=$(inside cosched run --scheduler ext -- true 2>&1) && fail "there is no cosched-ext, and $without"
[[ $without == *"$loader"* ]] || fail "without cosched-ext, '--scheduler ext' says '$without'"
cp "$EXT_DEB" "$root/ext.deb"
inside dpkg --install /ext.deb >/dev/null
rm "$root/ext.deb"
with=$(inside "$loader" --check 2>&1) || [[ $with == *remedy* && $with != *clang* ]] || fail "$loader --check says '$with'"
say "ok: $loader --check says '$with'"
[[ -s $root/usr/share/doc/cosched-ext/copyright ]] || fail "cosched-ext has no copyright file"
inside dpkg --purge cosched-ext >/dev/null
pages=$(python3 "$ROOT/packaging/pages.py" check "$root/usr/share/doc/cosched") || fail "links of installed pages lead nowhere: $pages"
say "ok: every link of $pages leads somewhere"
inside dpkg --purge cosched >/dev/null
left=$(comm -13 <(echo "$before") <(files))
[[ -z $left ]] || fail "left behind: $left"
say "ok: removed, and nothing is left"
if command -v systemd-analyze >/dev/null; then
    unit=$root/cosched@.service
    # It looks whether the command is there.
    sed "s|/usr/bin/cosched|$TARGET/release/cosched|" "$ROOT/packaging/cosched@.service" >"$unit"
    XDG_RUNTIME_DIR=$root systemd-analyze verify --user --man=no "$unit" || fail "systemd does not understand the unit"
    say "ok: systemd understands the unit"
fi
