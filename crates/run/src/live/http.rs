//! As much of HTTP as a scraper of metrics needs: one GET, one answer, end of the connection (RFC
//! 9112).

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
/// Longer requests are refused, in bytes.
pub(super) const LONGEST: usize = 8 << 10;

/// The answer to what has been received so far; `None`: the request is not whole yet.
pub(super) fn answer(received: &[u8], metrics: impl FnOnce() -> String) -> Option<Vec<u8>> {
    let whole = received.windows(4).any(|end| end == b"\r\n\r\n");
    if !whole && received.len() <= LONGEST {
        return None;
    }
    if !whole {
        return Some(response("431 Request Header Fields Too Large", PLAIN, "", true));
    }
    let line = received.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let [method, target, version] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Some(response("400 Bad Request", PLAIN, "this is not HTTP\n", true));
    };
    let path = path(target).split('?').next().unwrap_or_default();
    let with_body = method != "HEAD";
    Some(match (method, path) {
        _ if !version.starts_with("HTTP/1.") => {
            response("505 HTTP Version Not Supported", PLAIN, "", true)
        }
        ("GET" | "HEAD", "/metrics") => response("200 OK", OPENMETRICS, &metrics(), with_body),
        ("GET" | "HEAD", _) => {
            response("404 Not Found", PLAIN, "the metrics are at /metrics\n", with_body)
        }
        _ => response("405 Method Not Allowed\r\nAllow: GET, HEAD", PLAIN, "", true),
    })
}

/// The path of a target that names the server, too, as to a proxy: every server has to take that
/// (RFC 9112, 3.2.2).
fn path(target: &str) -> &str {
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    match scheme.and_then(|scheme| target.strip_prefix(scheme)) {
        Some(rest) => rest.find(['/', '?']).map_or("/", |path| &rest[path..]),
        None => target,
    }
}

fn response(status: &str, content_type: &str, body: &str, with_body: bool) -> Vec<u8> {
    let length = body.len();
    let body = if with_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use cosched_fuzz::damaged;
    use proptest::prelude::*;

    use super::*;

    fn answered(request: &str) -> Option<String> {
        let answer = answer(request.as_bytes(), || "# EOF\n".to_owned());
        answer.map(|answer| String::from_utf8(answer).unwrap())
    }

    proptest! {
        #[test]
        fn damaged_requests_get_a_whole_answer_or_none(bytes in damaged(vec![
            b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n".to_vec(),
            b"HEAD http://here/metrics?a HTTP/1.0\r\n\r\n".to_vec(),
        ])) {
            if let Some(answer) = answer(&bytes, || "# EOF\n".to_owned()) {
                let answer = String::from_utf8(answer).unwrap();
                let is_whole = answer.starts_with("HTTP/1.1 ") && answer.contains("\r\n\r\n");
                prop_assert!(is_whole, "{answer}");
            }
        }
    }

    #[test]
    fn metrics_are_answered_with_their_type_and_length() {
        let answer =
            answered("GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0;"));
        assert!(head.contains("\r\nContent-Length: 6"), "{head}");
        assert_eq!(body, "# EOF\n");
    }

    #[test]
    fn a_target_may_name_the_server_too() {
        for target in ["http://127.0.0.1:9464/metrics", "HTTP://here/metrics?x=1", "/metrics"] {
            let answer = answered(&format!("GET {target} HTTP/1.1\r\nHost: here\r\n\r\n"));
            assert!(answer.unwrap().starts_with("HTTP/1.1 200 "), "{target}");
        }
        for target in ["http://metrics", "http://here/", "ftp://here/metrics"] {
            let answer = answered(&format!("GET {target} HTTP/1.1\r\n\r\n"));
            assert!(answer.unwrap().starts_with("HTTP/1.1 404 "), "{target}");
        }
    }

    #[test]
    fn half_a_request_is_waited_for_and_an_endless_one_is_not() {
        assert_eq!(answered("GET /metrics HTTP/1.1\r\nHost: h"), None);
        let endless = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(LONGEST));
        assert!(answered(&endless).unwrap().starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn improper_requests_are_answered_with_a_status() {
        for (line, status) in [
            ("GET / HTTP/1.1", "404"),
            ("POST /metrics HTTP/1.1", "405"),
            ("GET /metrics HTTP/2", "505"),
            ("hello", "400"),
        ] {
            let answer = answered(&format!("{line}\r\n\r\n")).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
        }
        let head = answered("HEAD /metrics?x=1 HTTP/1.0\r\n\r\n").unwrap();
        assert!(head.contains("Content-Length: 6") && head.ends_with("\r\n\r\n"), "{head}");
    }
}
