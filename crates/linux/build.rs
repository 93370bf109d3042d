//! Makes what the executable carries: the programs for the kernel, and the hook's library.
//!
//! The crate builds without clang, libbpf's headers, or the library, too. It says at run time what
//! is missing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The folder of the kernel's programs. Each is compiled into an object of its own.
const FOLDER: &str = "../../bpf";
const SOURCES: [&str; 2] = ["monitor", "runstate"];
/// What the library is made of.
const HOOK: [&str; 6] = [
    "../hook/src",
    "../hook/Cargo.toml",
    "../page/src",
    "../page/Cargo.toml",
    "../../Cargo.toml",
    "../../Cargo.lock",
];
/// The variable with the path of a library that is built already.
const PREBUILT: &str = "COSCHED_HOOK_LIBRARY";

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for source in SOURCES {
        let object = folder.join(format!("{source}.bpf.o"));
        if let Err(complaint) = compile(source, &object) {
            println!(
                "cargo::warning=built without BPF ({source}), so lock times will be sampled and \
                 barriers know less ({complaint})"
            );
            fs::write(&object, []).expect("cargo's own folder can be written");
        }
    }
    embed_hook(&folder);
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

/// Puts the library where `hook/unpack.rs` includes it, and says what its content hashes to.
fn embed_hook(folder: &Path) {
    println!("cargo::rerun-if-env-changed={PREBUILT}");
    for part in HOOK {
        println!("cargo::rerun-if-changed={part}");
    }
    let content = match env::var_os(PREBUILT).filter(|path| !path.is_empty()) {
        Some(path) => prebuilt(Path::new(&path)),
        None => build_hook(&folder.join("hook")).unwrap_or_else(|complaint| {
            println!(
                "cargo::warning=built without the library for malleable programs and cosched's \
                 barriers; build it elsewhere and name it in {PREBUILT} ({complaint})"
            );
            Vec::new()
        }),
    };
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    println!("cargo::rustc-env=COSCHED_HOOK_HASH={:016x}", hasher.finish());
    fs::write(folder.join("hook.so"), content).expect("cargo's own folder can be written");
}

fn prebuilt(path: &Path) -> Vec<u8> {
    println!("cargo::rerun-if-changed={}", path.display());
    let content = fs::read(path);
    let content = content.unwrap_or_else(|error| panic!("{PREBUILT}={}: {error}", path.display()));
    assert!(content.starts_with(b"\x7fELF"), "{PREBUILT}={}: is no library", path.display());
    content
}

/// Builds the library by a cargo of its own, in a folder of its own: cargo lets no package have
/// the shared library of another. The error is cargo's message.
fn build_hook(folder: &Path) -> Result<Vec<u8>, String> {
    // `--frozen` keeps off the network. Only `cargo install` without `--locked` needs more: it
    // fetches other versions than those of the lock file.
    run_cargo(folder, "--frozen").or_else(|_| run_cargo(folder, "--locked"))
}

fn run_cargo(folder: &Path, lock: &str) -> Result<Vec<u8>, String> {
    let variable = |name| env::var(name).unwrap_or_default();
    let mut target = variable("TARGET");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    if variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static") {
        // A statically linked cosched starts dynamically linked programs.
        target = target.replace("musl", "gnu");
        cargo.env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=-crt-static");
    }
    let output = cargo
        .args(["rustc", "--quiet", "--package", "cosched-hook", "--lib", "--release", lock])
        .args(["--crate-type", "cdylib", "--target", &target, "--target-dir"])
        .arg(folder)
        // A program that is linked with the library too loads it only once, by this name.
        .args(["--", "-Clink-arg=-Wl,-soname,libcosched_hook.so"])
        // The outer cargo waits for this one, so its build folder stays locked.
        .env("CARGO_BUILD_BUILD_DIR", folder)
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        // clippy, among others, takes the compiler's place by these.
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let error = said.lines().find(|line| line.starts_with("error"));
        return Err(error.or(said.lines().next()).unwrap_or_default().to_owned());
    }
    let made = folder.join(target).join("release/libcosched_hook.so");
    fs::read(&made).map_err(|error| format!("{}: {error}", made.display()))
}
