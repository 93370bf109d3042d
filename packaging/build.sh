#!/usr/bin/env bash
# Makes a Debian package of the release build: target/package/cosched_VERSION_ARCHITECTURE.deb
#
# It needs nothing but dpkg's own tools and what cargo has fetched. The same sources, compiler and
# release of the distribution give the same package: its dates are those of the last commit.
set -euo pipefail
source "$(dirname "$0")/places.sh"

if ! command -v dpkg-deb >/dev/null; then
    say "skipped: the Debian package, since there is no dpkg-deb"
    exit 0
fi
MAINTAINER="${DEBFULLNAME:-The cosched developers} <${DEBEMAIL:-cosched@example.org}>"
built=$TARGET/release/cosched
ext=$TARGET/release/cosched-ext
hook=$TARGET/release/libcosched_hook.so
for file in "$built" "$hook" "$ext"; do
    [[ -e $file ]] || fail "$file is missing. Remedy: make package"
done
work=$PACKAGE/work
tree=$work/tree
rm -rf "$work"
umask 022
mkdir -p "$tree/DEBIAN" "$work/debian"
share=$tree/usr/share
doc=$share/doc/cosched

# Optimised builds keep lines for backtraces; a package does without.
install -D "$built" "$tree/usr/bin/cosched"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/bin/cosched"
# What a program needs that is linked with the library. The one that is preloaded is part of the executable.
install -D -m 644 "$hook" -t "$tree/usr/lib/cosched"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/lib/cosched/libcosched_hook.so"
install -D -m 644 "$ROOT/crates/hook/include/cosched.h" -t "$tree/usr/include"
"$built" manual "$share"
gzip -9 --no-name "$share"/man/man1/*.1
install -D -m 644 "$ROOT/packaging/cosched@.service" -t "$tree/usr/lib/systemd/user"
mkdir -p "$doc"
python3 "$ROOT/packaging/pages.py" install "$ROOT" "$doc"
python3 "$ROOT/packaging/copyright.py" "$ROOT" >"$doc/copyright"
gzip -9 --no-name >"$doc/changelog.gz" <<EOF
cosched ($VERSION) unstable; urgency=medium

  * Made of the sources of this version by \`make package\`.

 -- $MAINTAINER  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
EOF

# Which libraries, and which versions of them: found in the executable.
printf 'Source: cosched\n\nPackage: cosched\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O tree/usr/bin/cosched tree/usr/lib/cosched/libcosched_hook.so | sed -n 's/^shlibs:Depends=//p')
cat >"$tree/DEBIAN/control" <<EOF
Package: cosched
Version: $VERSION
Architecture: $(dpkg --print-architecture)
Maintainer: $MAINTAINER
Installed-Size: $(du -k -s --apparent-size "$tree/usr" | cut -f1)
Depends: $libraries
Section: utils
Priority: optional
Description: co-scheduler for multithreaded programs
 The kernel schedules threads, not programs: a thread that all its siblings
 wait for loses its CPU to a thread of another program, and the siblings spin
 or sleep meanwhile. cosched decides which programs run at the same time, on
 which CPUs, and for how long. Programs and kernel stay as they are, and no
 root is needed.
 .
 Several policies from the literature can be chosen, compared with each other
 and with plain Linux, and simulated on machines that are not at hand.
EOF
cat >"$tree/DEBIAN/postrm" <<'EOF'
#!/bin/sh
set -e
# Runs of root unpack the library there.
if [ "$1" = purge ]; then
    rm -rf /var/cache/cosched
fi
EOF
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
chmod 644 "$tree"/DEBIAN/*
chmod 755 "$tree/DEBIAN/postrm"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$DEB" >/dev/null
say "$DEB, $(du -h "$DEB" | cut -f1)"

# What loads the scheduler into the kernel: apart, since it needs libraries that cosched does without.
tree=$work/ext
mkdir -p "$tree/DEBIAN" "$tree/usr/share/doc/cosched-ext"
install -D "$ext" "$tree/usr/libexec/cosched/cosched-ext"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/libexec/cosched/cosched-ext"
python3 "$ROOT/packaging/copyright.py" "$ROOT" ext >"$tree/usr/share/doc/cosched-ext/copyright"
cp "$doc/changelog.gz" "$tree/usr/share/doc/cosched-ext/"
libraries=$(cd "$work" && dpkg-shlibdeps -O ext/usr/libexec/cosched/cosched-ext | sed -n 's/^shlibs:Depends=//p')
cat >"$tree/DEBIAN/control" <<EOF
Package: cosched-ext
Version: $VERSION
Architecture: $(dpkg --print-architecture)
Maintainer: $MAINTAINER
Installed-Size: $(du -k -s --apparent-size "$tree/usr" | cut -f1)
Depends: cosched (= $VERSION), $libraries
Section: utils
Priority: optional
Description: scheduler in the kernel for cosched
 It loads a scheduler written in BPF for programs that cosched runs with
 --scheduler ext: a waiting thread gives its CPU to a thread that it names, and
 time slices have any length. Needs Linux 6.12 or newer with sched_ext.
EOF
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
chmod 644 "$tree"/DEBIAN/*
dpkg-deb --root-owner-group -Zxz --build "$tree" "$EXT_DEB" >/dev/null
rm -rf "$work"
say "$EXT_DEB, $(du -h "$EXT_DEB" | cut -f1)"
