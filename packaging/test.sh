#!/usr/bin/env bash
# Tries the package: is it well made, does it work in a Debian that has nothing else, and does it leave nothing behind?
#
# The clean root is of the release that the package was built on, since it needs that one's C library. It is made by
# debootstrap once, kept in target/package/root.tar, and unpacked anew each time.
set -euo pipefail
source "$(dirname "$0")/places.sh"

((EUID == 0)) || fail "a clean root can only be made by root. Remedy: sudo make test-package"
[[ -e $DEB ]] || fail "$DEB is missing. Remedy: make package"
archive=$PACKAGE/root.tar
root=$(mktemp -d "$PACKAGE/root.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT

# Runs a command in the root; what is mounted for it is gone when it ends.
inside() {
    unshare --mount -- bash -euc '
        mount -t proc proc "$0/proc"; mount --rbind /sys "$0/sys"; mount --rbind /dev "$0/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$0/tmp"
        exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"' "$root" "$@"
}
# Every file of the root but what dpkg keeps for itself.
files() { (cd "$root" && find . -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -print | LC_ALL=C sort); }
# expect TEXT COMMAND...: the command succeeds, and says that.
expect() {
    local said
    said=$(inside "${@:2}" 2>&1) || fail "'${*:2}' failed: $said"
    [[ $said == *"$1"* ]] || fail "'${*:2}' says '$said', without '$1'"
    say "ok: ${*:2}"
}

lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$DEB"
say "ok: lintian finds no error, and warns of nothing"

if [[ ! -e $archive ]]; then
    say "making a clean root"
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    # Where this machine has its own packages from.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1)
    debootstrap --variant=minbase "$release" "$root" "$mirror" >"$PACKAGE/debootstrap.log" \
        || fail "debootstrap failed; $PACKAGE/debootstrap.log tells why"
    tar -C "$root" --one-file-system -cf "$archive.part" .
    mv "$archive.part" "$archive"
    rm -rf --one-file-system "$root"/*
fi
tar -C "$root" -xf "$archive"
chmod 755 "$root" # mktemp keeps everybody else out

before=$(files)
cp "$DEB" "$root/cosched.deb"
inside dpkg --install /cosched.deb >/dev/null
rm "$root/cosched.deb"
[[ $(files) != "$before" ]] || fail "nothing was installed"
say "ok: installed"
expect "cosched $VERSION" cosched --version
expect "ok" cosched run -- true ::: true
expect '"schema":"cosched-run/1"' cosched run --json -- true ::: true
expect "ok" setpriv --reuid 65534 --regid 65534 --clear-groups cosched run -- true ::: true
expect "rung" cosched doctor --json
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
for file in man/man1/cosched-run.1.gz bash-completion/completions/cosched doc/cosched/copyright; do
    [[ -s $root/usr/share/$file ]] || fail "/usr/share/$file is missing"
done
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
