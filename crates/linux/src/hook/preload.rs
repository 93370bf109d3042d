//! How a program gets the hook's library.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use cosched_page::SOCKET;

/// The variable that names libraries for the dynamic linker to load before all others.
const PRELOAD: &str = "LD_PRELOAD";

/// Adds to an environment what makes a program's processes connect to a hook server: the library
/// before all others that are preloaded.
pub fn preloaded(env: &mut Vec<(OsString, OsString)>, library: &Path, hook_server: &str) {
    let others = env.iter().position(|(key, _)| key == PRELOAD).map(|i| env.swap_remove(i).1);
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(OsStr::new(":"));
        all.push(others);
    }
    env.retain(|(key, _)| key != SOCKET);
    env.push((PRELOAD.into(), all));
    env.push((SOCKET.into(), hook_server.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_an_outer_hook_server_is_dropped() {
        let pair = |key: &str, value: &str| (OsString::from(key), OsString::from(value));
        let mut env = vec![pair(PRELOAD, "/a.so"), pair(SOCKET, "outer"), pair("HOME", "/h")];
        preloaded(&mut env, Path::new("/lib/hook.so"), "inner");
        env.sort();
        let expected =
            [pair(SOCKET, "inner"), pair("HOME", "/h"), pair(PRELOAD, "/lib/hook.so:/a.so")];
        assert_eq!(env, expected);
    }
}
