#!/usr/bin/env bash
# Builds the tests and packs them into the file system that every guest starts from.
#
# A guest runs the very binaries that `make test` runs, without cargo. They know the
# commands that they test by the absolute paths of the build, so those lie at the
# same paths in the guest. The kernel unpacks any number of archives one after
# another, so only the small one with the tests is made anew each time.
set -euo pipefail
source "$(dirname "$0")/places.sh"
source "$ROOT/guest/small.sh"

STAGE=$GUEST/stage
rm -rf "$STAGE"
mkdir -p "$STAGE/tests" "$STAGE/etc/systemd/system/multi-user.target.wants"

# Copies without what only a debugger reads: a guest has little memory.
stripped() { strip --strip-debug -o "$2" "$1"; chmod 755 "$2"; }

cd "$ROOT"
if ! cargo test --locked -p cosched -p cosched-linux --no-run >"$GUEST/build.log" 2>&1; then
    cat "$GUEST/build.log" >&2
    exit 1
fi
# "  Executable tests/live/main.rs (target/debug/deps/live-0123)"
# With the libraries that it needs, which the others do not.
cargo build --quiet --locked -p cosched-ext
sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$GUEST/build.log" | while read -r built; do
    name=$(basename "$built")
    stripped "$built" "$STAGE/tests/${name%-*}"
done
for command in cosched cosched-hidden cosched-ext examples/trap examples/pool examples/threads; do
    mkdir -p "$(dirname "$STAGE$TARGET/debug/$command")"
    stripped "$TARGET/debug/$command" "$STAGE$TARGET/debug/$command"
done
cp guest/inside/init guest/inside/tests.sh "$STAGE/tests/"
cp -r guest/variants "$STAGE/tests/"

# For variants with a SMALL userland: one list of tests, and the commands that they and their programs call.
small "$GUEST/small"
mkdir -p "$SMALL/tests" "$SMALL$TARGET"
cp -r "$STAGE/tests/"{guest,init,tests.sh,variants} "$SMALL/tests/"
cp -r "$STAGE$TARGET/debug" "$SMALL$TARGET/"
take /bin/{sh,bash,mount,hostname,sleep,cat,mkdir,ln,sed,grep,cut,uname,nproc,chrt,taskset,timeout,stat}
need "$SMALL/tests/guest" "$SMALL$TARGET/debug/"{cosched,cosched-ext}
pack "$GUEST/small.cpio"

# systemd empties /tmp when it starts, and the build may lie there.
mkdir -p "$STAGE/etc/tmpfiles.d"
ln -s /dev/null "$STAGE/etc/tmpfiles.d/tmp.conf"
cp guest/inside/tests.service "$STAGE/etc/systemd/system/"
ln -s ../tests.service "$STAGE/etc/systemd/system/multi-user.target.wants/"
# The user manager of a user who lingers does not start anew at each login.
mkdir -p "$STAGE/var/lib/systemd/linger"
touch "$STAGE/var/lib/systemd/linger/tester"
# An archive says again what the folders on the way are like.
[[ ! -d $STAGE/tmp ]] || chmod 1777 "$STAGE/tmp"
(cd "$STAGE" && find . -print0 | cpio --quiet -0 -o -H newc -R 0:0) >"$GUEST/tests.cpio"
cat "$GUEST/userland.cpio" "$GUEST/tests.cpio" >"$GUEST/initrd"
rm -rf "$STAGE"
