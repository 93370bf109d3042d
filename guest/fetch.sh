#!/usr/bin/env bash
# Fetches what a guest is made of: a kernel and a small Debian.
#
# Nothing of either is installed on this machine. The kernel comes out of its
# package, from a release of Debian that has one new enough to set a slice per
# thread (6.12); the userland is of the release that the tests were built on,
# because they need its C library. Both stay in target/guest until `make clean`.
set -euo pipefail
source "$(dirname "$0")/places.sh"

# What has to be installed on this machine, and nothing more.
TOOLS=(qemu-system-x86 mmdebstrap cpio binutils)
# Version 7 miscounts flags of emulated processors: kernels crash in it now and then.
QEMU=8
KERNEL_RELEASE=trixie
KERNEL=linux-image-cloud-amd64
# A kernel with sched_ext: Debian builds it in from 7.3 on, and earlier ones describe its functions wrongly.
EXT_KERNEL_RELEASE=trixie-backports
EXT_KERNEL='linux-binary-unsigned-.*-cloud-amd64'
# For `systemd-run --user` as a user who has logged in.
USERLAND=systemd-sysv,dbus,dbus-user-session,libpam-systemd,login,passwd,util-linux,procps

say() { echo "guest: $*"; }

# Of what could not be fetched: ends the script.
unreachable() {
    say "$1 cannot be fetched: is ${MIRROR:-the mirror of this machine} out of reach? apt said why above." >&2
    say "Remedy: connect this machine (behind a proxy, set http_proxy), check with apt-get update, and run" \
        "guest/fetch.sh again; what is there is kept." >&2
    exit 1
}

install_tools() {
    local missing=() tool
    for tool in "${TOOLS[@]}"; do
        dpkg-query -W -f='${db:Status-Status}' "$tool" 2>/dev/null | grep -qx installed || missing+=("$tool")
    done
    ((${#missing[@]})) || return 0
    say "installing ${missing[*]}"
    apt-get update -q -o APT::Update::Error-Mode=any || unreachable "the list of packages"
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" \
        || unreachable "${missing[*]}"
}

qemu_version() { qemu-system-x86_64 --version | sed -n 's/.*version \([0-9]*\).*/\1/p'; }

# Makes `apt` a call of apt-get that knows these releases and keeps what it knows apart from this machine's.
know_releases() {
    local release
    rm -rf "$GUEST/apt"
    mkdir -p "$GUEST/apt/lists/partial" "$GUEST/apt/archives/partial"
    for release; do echo "deb [signed-by=$KEYS] $MIRROR $release main"; done >"$GUEST/apt/sources.list"
    apt_options=(-q -o Dir::Etc::sourcelist="$GUEST/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$GUEST/apt/lists" -o Dir::Cache="$GUEST/apt" -o APT::Sandbox::User=root
        -o Acquire::Languages=none -o APT::Update::Error-Mode=any)
    apt update >/dev/null || unreachable "the list of packages of $*"
}
apt() { apt-get "${apt_options[@]}" "$@"; }

renew_qemu() {
    local release
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    say "QEMU $(qemu_version) is too old; installing the one of $release-backports"
    know_releases "$release" "$release-backports"
    DEBIAN_FRONTEND=noninteractive apt install -y --no-install-recommends -t "$release-backports" qemu-system-x86 \
        || unreachable "a newer QEMU"
    rm -rf "$GUEST/apt"
}

fetch_kernel() {
    local unpacked=$GUEST/kernel name
    say "fetching the kernel of $KERNEL_RELEASE"
    know_releases "$KERNEL_RELEASE"
    # The package of that name is empty, and depends on the kernel of the day.
    name=$(apt-cache "${apt_options[@]}" show "$KERNEL" | sed -n 's/^Depends: \([^ ,]*\).*/\1/p' | head -1)
    (cd "$GUEST/apt/archives" && apt download "$name") || unreachable "the kernel"
    rm -rf "$unpacked"
    dpkg-deb -x "$GUEST/apt/archives/${name}"_*.deb "$unpacked"
    mv "$unpacked"/boot/vmlinuz-* "$GUEST/vmlinuz"
    rm -rf "$GUEST/apt" "$unpacked"
    say "kernel: ${name#linux-image-}"
}

fetch_ext_kernel() {
    local unpacked=$GUEST/kernel name
    say "fetching a kernel with sched_ext, of $EXT_KERNEL_RELEASE"
    know_releases "$EXT_KERNEL_RELEASE"
    name=$(apt-cache "${apt_options[@]}" search --names-only "^$EXT_KERNEL\$" | cut -d' ' -f1 | sort -V | tail -1)
    (cd "$GUEST/apt/archives" && apt download "$name") || unreachable "a kernel with sched_ext"
    rm -rf "$unpacked"
    dpkg-deb -x "$GUEST/apt/archives/${name}"_*.deb "$unpacked"
    mv "$unpacked"/usr/lib/modules/*/vmlinuz* "$GUEST/vmlinuz-ext"
    rm -rf "$GUEST/apt" "$unpacked"
    say "kernel: ${name#linux-binary-unsigned-}"
}

fetch_userland() {
    local release tree=$GUEST/userland
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    say "fetching the userland: $release with systemd"
    rm -rf "$tree"
    mmdebstrap --quiet --mode=root --variant=minbase --include="$USERLAND" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --customize-hook='chroot "$1" useradd --create-home --shell /bin/bash tester' \
        "$release" "$tree" "deb [signed-by=$KEYS] $MIRROR $release main" || unreachable "the userland"
    # Not compressed: under emulation, unpacking costs more than loading.
    (cd "$tree" && find . -path ./dev/\* -prune -o -print0 | cpio --quiet -0 -o -H newc) >"$GUEST/userland.cpio.part"
    mv "$GUEST/userland.cpio.part" "$GUEST/userland.cpio"
    rm -rf "$tree"
}

if ! command -v dpkg-query >/dev/null; then
    say "not a Debian or Ubuntu, so there is nothing to make a guest of." >&2
    exit 1
fi
if ((EUID != 0)); then
    say "a userland can only be unpacked by root. Remedy: as root, $0" >&2
    exit 1
fi
mkdir -p "$GUEST"
install_tools
(($(qemu_version) >= QEMU)) || renew_qemu
[[ -e $GUEST/vmlinuz ]] || fetch_kernel
[[ -e $GUEST/vmlinuz-ext ]] || fetch_ext_kernel
[[ -e $GUEST/userland.cpio ]] || fetch_userland
