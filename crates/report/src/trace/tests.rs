//! The trace, read by a reader that shares nothing with the writer. It has field numbers of its
//! own, from the `.proto` files.

use std::collections::BTreeMap;

use super::*;
use crate::by_hand::{B, ms, run};
use crate::testkit;

/// A field's value as it stands in the file.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, by number.
type Fields = BTreeMap<u64, Vec<Value>>;

fn read(mut bytes: &[u8]) -> Fields {
    let mut fields = Fields::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(key >> 3).or_default().push(value);
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).expect("a last byte") + 1;
    let (varint, rest) = bytes.split_at(length);
    *bytes = rest;
    varint.iter().rev().fold(0, |value, byte| (value << 7) | u64::from(byte & 0x7f))
}

#[test]
fn a_trace_is_known_by_its_beginning() {
    assert!(is_trace(&trace(&run()).bytes));
    for other in [&b""[..], b"{\"schema\":\"cosched-run/1\"}", b"cosched: programs", b"\n\x20"] {
        assert!(!is_trace(other));
    }
}

fn number(fields: &Fields, field: u64) -> Option<u64> {
    match fields.get(&field)?.as_slice() {
        [Value::Number(number)] => Some(*number),
        other => panic!("field {field}: {other:?}"),
    }
}

fn messages(fields: &Fields, field: u64) -> Vec<Fields> {
    let bytes = |value: &Value| match value {
        Value::Bytes(bytes) => read(bytes),
        Value::Number(number) => panic!("field {field}: {number}"),
    };
    fields.get(&field).into_iter().flatten().map(bytes).collect()
}

fn text(fields: &Fields, field: u64) -> Option<String> {
    match fields.get(&field)?.as_slice() {
        [Value::Bytes(bytes)] => Some(String::from_utf8(bytes.clone()).expect("UTF-8")),
        other => panic!("field {field}: {other:?}"),
    }
}

/// An event on a track: its time, type, name, counter value and annotations.
#[derive(Clone, Debug)]
struct Seen {
    at: u64,
    kind: u64,
    name: String,
    value: u64,
    notes: BTreeMap<String, String>,
}

/// The events of each track, by the path of its names.
fn tracks(bytes: &[u8]) -> BTreeMap<String, Vec<Seen>> {
    let mut paths: BTreeMap<u64, String> = BTreeMap::new();
    let mut tracks: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
    let mut latest = 0;
    for packet in messages(&read(bytes), 1) {
        for track in messages(&packet, 60) {
            let (id, name) = (number(&track, 1).unwrap(), text(&track, 2).unwrap());
            let path = match number(&track, 5) {
                Some(parent) => format!("{}/{name}", paths[&parent]),
                None => name,
            };
            tracks.insert(path.clone(), vec![]);
            assert_eq!(paths.insert(id, path), None, "an id is used once");
        }
        for event in messages(&packet, 11) {
            assert!(number(&packet, 10).is_some_and(|sequence| sequence > 0));
            let at = number(&packet, 8).unwrap();
            assert!(at >= latest, "events come in order of time");
            latest = at;
            let note = |note: Fields| (text(&note, 10).unwrap(), text(&note, 6).unwrap());
            let seen = Seen {
                at: at / 1_000_000,
                kind: number(&event, 9).unwrap(),
                name: text(&event, 23).unwrap_or_default(),
                value: number(&event, 30).unwrap_or_default(),
                notes: messages(&event, 4).into_iter().map(note).collect(),
            };
            tracks.get_mut(&paths[&number(&event, 11).unwrap()]).unwrap().push(seen);
        }
    }
    tracks
}

/// Slices of a track: from, to, name. Checks that they follow one another.
fn slices(track: &[Seen]) -> Vec<(u64, u64, String)> {
    let mut slices = Vec::new();
    let mut open: Option<(u64, String)> = None;
    for event in track {
        match event.kind {
            1 => assert_eq!(open.replace((event.at, event.name.clone())), None),
            2 => {
                let (from, name) = open.take().expect("a slice that ends has begun");
                slices.push((from, event.at, name));
            }
            _ => {}
        }
    }
    assert_eq!(open, None, "every slice ends");
    slices
}

fn owned(slices: &[(u64, u64, &str)]) -> Vec<(u64, u64, String)> {
    slices.iter().map(|(from, to, name)| (*from, *to, (*name).to_owned())).collect()
}

#[test]
fn a_program_has_a_track_with_what_it_did_and_why() {
    let tracks = tracks(&trace(&run()).bytes);
    let a = &tracks["cosched: programs/a"];
    assert_eq!(
        slices(a),
        owned(&[
            (0, 1, "not started"),
            (1, 101, "running"),
            (101, 203, "frozen"),
            (203, 250, "running")
        ])
    );
    let at = |at: u64| &a.iter().find(|event| event.at == at && event.kind == 1).unwrap().notes;
    assert_eq!(at(1)["cpus"], "0-1");
    assert_eq!(at(1)["why"], "it has its turn");
    assert_eq!(at(101)["why"], "it is another program's turn (it is in gang 1)");
    assert_eq!(at(101)["decided"], "0.100 s");
    assert!(a.iter().any(|event| event.kind == 3 && event.at == 250 && event.name == "ended: ok"));
}

#[test]
fn deviations_stand_on_the_programs_track() {
    let tracks = tracks(&trace(&run()).bytes);
    let b = &tracks["cosched: programs/b"];
    let late = b.iter().find(|event| event.at == 210).unwrap();
    assert_eq!((late.kind, late.name.as_str()), (3, "ran outside its turn"));
    assert_eq!(late.notes["why"], "because pausing it took too long");
}

#[test]
fn every_cpu_has_a_track_with_the_programs_that_may_run() {
    let tracks = tracks(&trace(&run()).bytes);
    let cpus: Vec<&String> = tracks.keys().filter(|path| path.contains("CPUs/")).collect();
    assert_eq!(
        cpus,
        ["CPU 0", "CPU 1", "CPU 2", "CPU 3"].map(|cpu| format!("cosched: CPUs/{cpu}")).each_ref()
    );
    assert_eq!(
        slices(&tracks["cosched: CPUs/CPU 0"]),
        owned(&[
            (1, 101, "a"),
            (102, 203, "b"),
            (203, 250, "a + b"),
            (250, 260, "b"),
            (265, 270, "b"),
            (280, 300, "b"),
        ])
    );
    assert_eq!(slices(&tracks["cosched: CPUs/CPU 3"])[0], (102, 260, "b".to_owned()));
}

#[test]
fn the_scheduler_has_tracks_of_quanta_and_decisions() {
    let tracks = tracks(&trace(&run()).bytes);
    let quanta = slices(&tracks["cosched: scheduler/quanta"]);
    assert_eq!(quanta[1], (100, 200, "round 1, gang 2 of 2".to_owned()));
    let decisions = &tracks["cosched: scheduler/decisions"];
    assert_eq!(decisions.len(), 5);
    assert_eq!((decisions[0].at, decisions[0].name.as_str()), (0, "run c and a"));
    assert_eq!(decisions[0].notes["b"], "it is another program's turn (it is in gang 2)");
    let whole = &tracks["cosched: scheduler/run"][0];
    assert_eq!((whole.name.as_str(), whole.notes["CPUs"].as_str()), ("greedy", "4"));
}

#[test]
fn counters_show_running_and_waiting_programs() {
    let tracks = tracks(&trace(&run()).bytes);
    let values = |name: &str| -> Vec<(u64, u64)> {
        let track = &tracks[&format!("cosched: scheduler/{name}")];
        assert!(track.iter().all(|event| event.kind == 4));
        track.iter().map(|event| (event.at, event.value)).collect()
    };
    assert_eq!(values("running programs")[..3], [(1, 2), (101, 1), (102, 2)]);
    assert_eq!(values("threads of running programs")[..3], [(1, 3), (101, 1), (102, 5)]);
    assert_eq!(values("waiting programs")[..2], [(0, 3), (1, 1)]);
    assert_eq!(values("running programs").last(), Some(&(300, 0)));
}

#[test]
fn the_same_result_gives_the_same_bytes() {
    let result = run();
    let found = trace(&result);
    assert_eq!(found.bytes, trace(&result).bytes);
    let tracks = tracks(&found.bytes);
    assert_eq!(tracks.len(), found.tracks);
    assert_eq!(tracks.values().map(Vec::len).sum::<usize>(), found.events);
}

#[test]
fn a_file_that_names_missing_programs_is_traced() {
    let mut result = run();
    result.programs.pop();
    result.deviations[0].program.slot = 9;
    let tracks = tracks(&trace(&result).bytes);
    assert!(!tracks.contains_key("cosched: programs/c"));
    assert_eq!(History::of(&result).deviations(B, ms(0), ms(300)).count(), 1);
}

#[test]
fn locks_and_slices_stand_below_their_program() {
    let tracks = tracks(&trace(&testkit::faithful()).bytes);
    let values = |name: &str| -> Vec<(u64, u64)> {
        tracks[&format!("cosched: programs/{name}")]
            .iter()
            .map(|seen| (seen.at, seen.value))
            .collect()
    };
    assert_eq!(values("b: lock contention"), [(100, 12), (600, 0)]);
    assert_eq!(values("b: slice"), [(100, 20_000), (600, 0)]);
    let scheduled = &tracks["cosched: programs/a: scheduled"];
    assert_eq!(
        slices(scheduled)[1..3],
        owned(&[(110, 200, "trial: slice 200 ms"), (200, 300, "trial: batch-slice 200 ms")])
    );
    assert!(scheduled.last().is_some_and(|seen| seen.at == 600));
    assert!(
        scheduled
            .iter()
            .any(|seen| seen.notes.get("why").is_some_and(|why| why.contains("0.40 times")))
    );
    let gang = super::trace(&testkit::gang());
    assert_eq!(gang.tracks, 3 + 2 + 2 + 6, "no further tracks under other policies");
}
