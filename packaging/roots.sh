# shellcheck shell=bash
# Clean roots to try packages in. Sourced after places.sh.
#
# A root is made by debootstrap once, kept in target/package/roots until other packages belong in it, and unpacked anew
# each time, into $root.
((EUID == 0)) || fail "a clean root can only be made by root. Remedy: sudo make test-package"
ROOTS=$PACKAGE/roots
INCLUDED=man-db,python3-venv,bash-completion,fish,zsh
mkdir -p "$ROOTS"
root=$(mktemp -d "$PACKAGE/root.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT

# unpack RELEASE: lays a clean root of that release of Debian or Ubuntu. Fails where none can be made.
unpack() {
    local archive=$ROOTS/$1-$(cksum <<<"$INCLUDED" | cut -d' ' -f1).tar script=/usr/share/debootstrap/scripts/$1 mirror=() options=(--variant=minbase)
    rm -rf --one-file-system "$root"
    mkdir -m 755 "$root"
    if [[ ! -e $archive ]]; then
        say "making a clean root of $1"
        if grep -q ubuntu-archive "$script"; then
            # Signatures are checked where the package ubuntu-keyring is installed.
            mirror=("${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}")
            options+=(--components=main,universe)
        elif grep -q '^ID=debian' /etc/os-release; then
            # Where this Debian has its own packages from; else debootstrap knows a mirror.
            mapfile -t mirror < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1)
        fi
        debootstrap "${options[@]}" --include="$INCLUDED" "$1" "$root" "${mirror[@]}" >"$ROOTS/$1.log" \
            || { say "debootstrap failed; $ROOTS/$1.log tells why"; return 1; }
        tar -C "$root" --one-file-system --exclude='./var/cache/apt/archives/*.deb' -cf "$archive.part" . && mv "$archive.part" "$archive"
    else
        tar -C "$root" -xf "$archive"
    fi
}
# Runs a command in the root; what is mounted for it is gone when it ends.
inside() {
    unshare --mount -- bash -euc '
        mount -t proc proc "$0/proc"; mount --rbind /sys "$0/sys"; mount --rbind /dev "$0/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$0/tmp"
        exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"' "$root" "$@"
}
# Every file of the root but what dpkg and man keep for themselves.
files() { (cd "$root" && find . -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./var/cache/man -prune -o -print | LC_ALL=C sort); }
# expect TEXT COMMAND...: the command succeeds, and says that.
expect() {
    local said
    said=$(inside "${@:2}" 2>&1) || fail "'${*:2}' failed: $said"
    [[ $said == *"$1"* ]] || fail "'${*:2}' says '$said', without '$1'"
    say "ok: ${*:2}"
}
