#!/bin/sh
# Encodes so many frames of a made-up film with x264, and counts them.
set -eu
film=$(mktemp --suffix=.mkv)
trap 'rm -f "$film"' EXIT
ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=size=640x360:rate=25 -frames:v "$1" \
    -c:v libx264 -preset medium -threads "$(getconf _NPROCESSORS_ONLN)" "$film"
frames=$(ffprobe -loglevel error -count_packets -select_streams v -show_entries stream=nb_read_packets -of csv=p=0 "$film")
[ "$frames" = "$1" ] && echo "encode ok frames=$frames"
