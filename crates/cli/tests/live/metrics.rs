//! Metrics of a run, as a scraper gets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use cosched_results::live::Snapshot;
use rustix::process::Signal;

use super::onlookers::{endless, socket};
use super::support::{Place, eventually, skip};

/// Another project's parser of OpenMetrics reads standard input; 3: it is not installed here.
const PARSER: &str = "
import sys
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError:
    sys.exit(3)
for family in parse(sys.stdin.read()):
    print(family.name, family.type, family.unit, len(family.samples))
";

/// The answer to a GET of a path: head and body.
fn get(mut stream: impl Read + Write, path: &str) -> (String, String) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample));
    line.unwrap_or_else(|| panic!("{sample}: {text}")).trim().parse().unwrap()
}

#[test]
fn a_scraper_gets_openmetrics_with_growing_counters() {
    let place = Place::new();
    let cosched = endless(&place, "--metrics unix:metrics");
    let path = place.path("metrics");
    eventually("the socket for metrics", || path.exists());
    let scrape = || get(UnixStream::connect(&path).unwrap(), "/metrics");
    let (head, first) = scrape();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(first.ends_with("\n# EOF\n"), "{first}");
    let running = "cosched_program_running_seconds_total{program=\"a\"}";
    let before = value(&first, running);
    eventually("a further second of running", || value(&scrape().1, running) > before);

    let mut python = Command::new("python3")
        .args(["-c", PARSER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(scrape().1.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    match output.status.code() {
        Some(3) => skip("python3 has no prometheus_client: the parser is not tried"),
        code => {
            let said = String::from_utf8(output.stdout).unwrap();
            assert_eq!(code, Some(0), "{said}");
            for family in [
                "cosched_run info  1",
                "cosched_program_running_seconds counter seconds 2",
                "cosched_program_state stateset  16",
            ] {
                assert!(said.lines().any(|line| line == family), "{family}: {said}");
            }
        }
    }
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
    assert!(!path.exists());
}

/// The address of the metrics, as cosched prints it.
fn address(place: &Place) -> String {
    let messages = || place.read("cosched.stderr");
    eventually("the address", || messages().contains("/metrics\n"));
    messages().split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

#[test]
fn a_port_chosen_by_the_kernel_is_shown() {
    let place = Place::new();
    let cosched = endless(&place, "--metrics 127.0.0.1:0");
    let address = &address(&place);
    let (head, _) = get(TcpStream::connect(address).unwrap(), "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let (head, _) = get(TcpStream::connect(address).unwrap(), "/");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn idle_connections_do_not_block_scrapers() {
    let place = Place::new();
    let cosched = endless(&place, "--metrics 127.0.0.1:0");
    let address = &address(&place);
    // More than there are places at both sockets together.
    let crowd: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut line = String::new();
    let owner = UnixStream::connect(socket(&place, &cosched)).unwrap();
    BufReader::new(owner).read_line(&mut line).unwrap();
    Snapshot::from_json(&line).unwrap();
    let (head, _) = get(TcpStream::connect(address).unwrap(), "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    // None of them is kept, however long it stays. A client that was rejected finds the connection
    // closed.
    for mut idle in crowd {
        let ended = idle.read(&mut [0]);
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn metrics_that_cannot_be_served_are_refused_at_the_start() {
    let place = Place::new();
    place.write("notes", "mine");
    for (at, why) in [
        ("unix:notes", "notes: it exists already"),
        ("unix:no/such/folder", "no/such/folder"),
        ("0.0.0.0:1", "127.0.0.1:PORT or unix:PATH"),
    ] {
        let run = ["run", "-p", "fcfs", "--metrics", at, "--", "touch", "started"];
        let ended = place.cosched(&run).ended().with(2).saying(&[why]);
        assert!(!place.path("started").exists());
        place.nothing_is_left_of(&ended);
    }
    assert_eq!(place.read("notes"), "mine");
}
