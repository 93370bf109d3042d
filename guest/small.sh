# shellcheck shell=bash
# Packs a file system that holds a few programs of this machine and nothing else, for guests that are to start in seconds.
# Sourced by the other scripts.

# Begins one in a folder.
small() {
    SMALL=$1
    rm -rf "$SMALL"
    mkdir -p "$SMALL"/{proc,sys/fs/cgroup,dev,run,tmp,etc}
}

# Adds files, and the libraries that they need, at the places where this machine has them.
take() {
    local file
    for file; do
        mkdir -p "$SMALL$(dirname "$file")"
        cp -L "$file" "$SMALL$file"
    done
    need "$@"
}

# Adds the libraries alone.
need() {
    local library
    for library in $(ldd "$@" 2>/dev/null | grep -o '\(=>\|^\s\) */[^ :]*[^ :]' | grep -o '/.*' | sort -u); do
        mkdir -p "$SMALL$(dirname "$library")"
        cp -L "$library" "$SMALL$library"
    done
}

# Ends it. The same files give the same bytes.
pack() {
    find "$SMALL" -exec touch -h -d @0 {} +
    (cd "$SMALL" && find . -print0 | LC_ALL=C sort -z | cpio --quiet -0 -o -H newc -R 0:0 --reproducible) >"$1"
    rm -rf "$SMALL"
}
