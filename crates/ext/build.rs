//! Compiles the scheduler that the executable carries. Without clang, it says so when it is run.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const FOLDER: &str = "../../bpf";

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let object =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("scheduler.bpf.o");
    if let Err(complaint) = compile(&object) {
        println!("cargo::warning=built without the scheduler for sched_ext ({complaint})");
        fs::write(&object, []).expect("cargo's own folder can be written");
    }
}

/// The error is clang's message.
fn compile(object: &PathBuf) -> Result<(), String> {
    let architecture = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        _ => "unknown",
    };
    let headers = env::var("DEP_BPF_INCLUDE").map_err(|error| format!("libbpf: {error}"))?;
    let output = Command::new(env::var_os("CLANG").unwrap_or("clang".into()))
        .args(["-O2", "-g", "-Wall", "-target", "bpf", "-mcpu=v3", "-c", "scheduler.bpf.c"])
        .args([format!("-D__TARGET_ARCH_{architecture}"), format!("-I{headers}")])
        .arg("-o")
        .arg(object)
        .current_dir(FOLDER)
        .output()
        .map_err(|error| format!("clang: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().next().unwrap_or_default().to_owned())
        }
    }
}
