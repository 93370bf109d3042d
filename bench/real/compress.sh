#!/bin/sh
# Compresses so many MiB of numbers with zstd, and checks that they come back.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
head -c "$1"M numbers.txt >"$folder/in"
zstd -q -12 -T"$(getconf _NPROCESSORS_ONLN)" -B1MiB "$folder/in" -o "$folder/out"
zstd -q -d -c "$folder/out" | cmp - "$folder/in" && echo "compress ok"
