//! Compiles the programs for the kernel with clang, where it is there.
//!
//! Without clang or libbpf's headers, the crate still builds, and says at run time what is missing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The folder of these sources. Each is compiled into an object of its own.
const FOLDER: &str = "../../bpf";
const SOURCES: [&str; 2] = ["monitor", "runstate"];

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for source in SOURCES {
        let object = folder.join(format!("{source}.bpf.o"));
        if let Err(complaint) = compile(source, &object) {
            println!(
                "cargo::warning=built without BPF ({source}), so lock times will be sampled and barriers know less \
                 ({complaint})"
            );
            fs::write(&object, []).expect("cargo's own folder can be written");
        }
    }
}

/// Compiles a source. The error is clang's message.
fn compile(source: &str, object: &Path) -> Result<(), String> {
    let architecture = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        _ => "unknown",
    };
    let clang = env::var_os("CLANG").unwrap_or("clang".into());
    let output = Command::new(clang)
        .args(["-O2", "-g", "-Wall", "-target", "bpf", "-mcpu=v3", "-o"])
        .arg(object)
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        .arg("-c")
        .arg(format!("{source}.bpf.c"))
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
