//! Perfetto's own format for tracks and events.
//!
//! A file is a sequence of packets. One kind of packet describes a *track*: a line of the picture,
//! with a name and a parent. The other kind is an *event* on a track: a slice begins or ends,
//! something happens at an instant, a counter has a new value. Slices of one track are nested,
//! never staggered. Events may have *annotations*, names with texts. Perfetto shows them for the
//! selected event, and SQL can query them.
//!
//! *Source.* Perfetto's `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`,
//! `counter_descriptor.proto` and `debug_annotation.proto`; the numbers below are theirs, and only
//! fields of the stable interface are used.

use cosched_core::Nanos;

use super::protobuf::ProtobufMessage;

/// Field numbers, by message.
mod field {
    pub(super) const TRACE_PACKET: u64 = 1;

    pub(super) const PACKET_TIMESTAMP: u64 = 8;
    pub(super) const PACKET_SEQUENCE: u64 = 10;
    pub(super) const PACKET_EVENT: u64 = 11;
    pub(super) const PACKET_TRACK: u64 = 60;

    pub(super) const TRACK_ID: u64 = 1;
    pub(super) const TRACK_NAME: u64 = 2;
    pub(super) const TRACK_PARENT: u64 = 5;
    pub(super) const TRACK_COUNTER: u64 = 8;
    pub(super) const TRACK_ORDERING: u64 = 11;
    pub(super) const TRACK_RANK: u64 = 12;

    pub(super) const COUNTER_UNIT_NAME: u64 = 6;

    pub(super) const EVENT_ANNOTATION: u64 = 4;
    pub(super) const EVENT_TYPE: u64 = 9;
    pub(super) const EVENT_TRACK: u64 = 11;
    pub(super) const EVENT_CATEGORY: u64 = 22;
    pub(super) const EVENT_NAME: u64 = 23;
    pub(super) const EVENT_COUNTER_VALUE: u64 = 30;

    pub(super) const ANNOTATION_TEXT: u64 = 6;
    pub(super) const ANNOTATION_NAME: u64 = 10;
}

/// Values of enums.
const SLICE_BEGINS: u64 = 1;
const SLICE_ENDS: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
const CHILDREN_BY_RANK: u64 = 3;

/// The number of the only writer of the trace.
const SEQUENCE: u64 = 1;
/// Tracks are numbered from here ("cosched" in ASCII), so that traces of other tools can be
/// appended to the file.
const FIRST_TRACK: u64 = u64::from_be_bytes(*b"cosched\0");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(u64);

/// A name with a text, shown with an event.
pub(super) type DebugAnnotation = (String, String);

#[derive(Debug, Default)]
pub(super) struct TraceWriter {
    tracks: Vec<ProtobufMessage>,
    events: Vec<(Nanos, ProtobufMessage)>,
}

impl TraceWriter {
    /// A track that only holds others.
    pub(super) fn group(&mut self, name: &str) -> Track {
        self.add(
            None,
            name,
            ProtobufMessage::default().number(field::TRACK_ORDERING, CHILDREN_BY_RANK),
        )
    }

    /// A track of slices and instants. Tracks of one parent are shown in the order in which they
    /// were added.
    pub(super) fn track(&mut self, parent: Track, name: &str) -> Track {
        self.add(Some(parent), name, ProtobufMessage::default())
    }

    pub(super) fn counter(&mut self, parent: Track, name: &str, unit: &str) -> Track {
        let counter = ProtobufMessage::default().text(field::COUNTER_UNIT_NAME, unit);
        let descriptor = ProtobufMessage::default().message(field::TRACK_COUNTER, &counter);
        self.add(Some(parent), name, descriptor)
    }

    fn add(&mut self, parent: Option<Track>, name: &str, descriptor: ProtobufMessage) -> Track {
        let rank = self.tracks.len() as u64;
        let track = Track(FIRST_TRACK + rank);
        let mut descriptor = descriptor
            .number(field::TRACK_ID, track.0)
            .number(field::TRACK_RANK, rank)
            .text(field::TRACK_NAME, name);
        if let Some(Track(parent)) = parent {
            descriptor = descriptor.number(field::TRACK_PARENT, parent);
        }
        self.tracks.push(ProtobufMessage::default().message(field::PACKET_TRACK, &descriptor));
        track
    }

    /// A slice. The slices of one track have to be added in order of time.
    pub(super) fn slice(
        &mut self,
        track: Track,
        (from, to): (Nanos, Nanos),
        category: &str,
        name: &str,
        notes: &[DebugAnnotation],
    ) {
        self.event(from, described(event(track, SLICE_BEGINS), category, name, notes));
        self.event(to, event(track, SLICE_ENDS));
    }

    pub(super) fn instant(
        &mut self,
        track: Track,
        at: Nanos,
        category: &str,
        name: &str,
        notes: &[DebugAnnotation],
    ) {
        self.event(at, described(event(track, INSTANT), category, name, notes));
    }

    /// A counter's value from here on.
    pub(super) fn value(&mut self, track: Track, at: Nanos, value: u64) {
        self.event(at, event(track, COUNTER).number(field::EVENT_COUNTER_VALUE, value));
    }

    fn event(&mut self, at: Nanos, event: ProtobufMessage) {
        let packet = ProtobufMessage::default()
            .number(field::PACKET_TIMESTAMP, at.0)
            .number(field::PACKET_SEQUENCE, SEQUENCE)
            .message(field::PACKET_EVENT, &event);
        self.events.push((at, packet));
    }

    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.tracks.len(), self.events.len())
    }

    /// The file: every track, then every event in order of time. Events of one instant stay in the
    /// order in which they were given, so a slice ends before the next one of its track begins.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.events.sort_by_key(|(at, _)| *at);
        let events = self.events.into_iter().map(|(_, packet)| packet);
        let mut file = Vec::new();
        for packet in self.tracks.into_iter().chain(events) {
            let packet = ProtobufMessage::default().message(field::TRACE_PACKET, &packet);
            file.extend(packet.into_bytes());
        }
        file
    }
}

fn event(Track(track): Track, kind: u64) -> ProtobufMessage {
    ProtobufMessage::default().number(field::EVENT_TYPE, kind).number(field::EVENT_TRACK, track)
}

fn described(
    event: ProtobufMessage,
    category: &str,
    name: &str,
    notes: &[DebugAnnotation],
) -> ProtobufMessage {
    let event = event.text(field::EVENT_CATEGORY, category).text(field::EVENT_NAME, name);
    notes.iter().fold(event, |event, (name, text)| {
        let note = ProtobufMessage::default()
            .text(field::ANNOTATION_NAME, name)
            .text(field::ANNOTATION_TEXT, text);
        event.message(field::EVENT_ANNOTATION, &note)
    })
}
