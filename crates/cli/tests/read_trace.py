"""Reads a trace with Perfetto's own definitions of its messages, and prints what is in it as JSON.

Ends with status 77 where the package perfetto is not installed. An unknown field is an error: it would mean that a
field number is wrong.
"""

import collections
import json
import sys

try:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
    from google.protobuf.unknown_fields import UnknownFieldSet
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)


def check_known(message):
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in [value] if hasattr(value, "ListFields") else value:
            check_known(one)


trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
tracks, open_slices, latest = {}, collections.Counter(), 0
events = 0
slices = collections.Counter()
for packet in trace.packet:
    check_known(packet)
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks and track.name
        assert not track.HasField("parent_uuid") or track.parent_uuid in tracks
        tracks[track.uuid] = track
        continue
    event, events = packet.track_event, events + 1
    assert packet.HasField("track_event") and packet.trusted_packet_sequence_id
    assert packet.timestamp >= latest and event.track_uuid in tracks
    latest = packet.timestamp
    counts = event.type == TrackEvent.TYPE_COUNTER
    assert counts == tracks[event.track_uuid].HasField("counter")
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        open_slices[event.track_uuid] += 1
        slices[event.name] += 1
        assert open_slices[event.track_uuid] == 1, event
    elif event.type == TrackEvent.TYPE_SLICE_END:
        open_slices[event.track_uuid] -= 1
        assert open_slices[event.track_uuid] == 0, event
    else:
        assert counts or event.type == TrackEvent.TYPE_INSTANT and event.name
assert not any(open_slices.values())
print(json.dumps({"tracks": len(tracks), "events": events, "slices": slices, "latest": latest}))
