//! Compiles the programs for the kernel with clang, where it is there.
//!
//! Without clang, or without libbpf's headers, the crate builds all the same, and says at run time what is missing.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// From this folder, with this source.
const FOLDER: &str = "../../bpf";
const SOURCE: &str = "monitor.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let object =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("monitor.bpf.o");
    let architecture = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        _ => "unknown",
    };
    let clang = env::var_os("CLANG").unwrap_or("clang".into());
    let compiled = Command::new(clang)
        .args(["-O2", "-g", "-Wall", "-target", "bpf", "-mcpu=v3", "-c", SOURCE, "-o"])
        .arg(&object)
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        .current_dir(FOLDER)
        .output();
    let complaint = match compiled {
        Ok(output) if output.status.success() => return,
        Ok(output) => {
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
        }
        Err(error) => format!("clang: {error}"),
    };
    println!("cargo::warning=built without BPF, so lock times will be sampled ({complaint})");
    fs::write(&object, []).expect("cargo's own folder can be written");
}
