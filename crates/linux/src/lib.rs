//! A machine made of Linux.
//!
//! | module | what it holds |
//! |---|---|
//! | [`kernel`] | interfaces of the kernel, one module each; they know no programs |
//! | [`clients`] | what clients of a run connect to, request, and are shown |
//! | [`cgroup`] | control groups |
//! | [`process`] | how programs are started, found, and followed until they end |
//! | [`safety`] | how every change is undone, and which processes are left alone |
//! | [`hook`] | cosched's side of the library inside programs |
//! | [`observe`] | what programs do |
//! | [`control`] | what is changed for a program: whether it runs, where, and how it is scheduled |
//! | [`rights`] | what this kernel, machine and user allow |
//! | [`machine`] | all of it together: the machine that carries out plans |
//! | [`helpers`] | where the helper processes begin |
//!
//! A module uses only those above it.
//!
//! Every module that reads files takes the folder to read them from, so that it is tested on
//! made-up machines. Modules that call the kernel are thin. This crate is the only place outside
//! the hook where `unsafe` is allowed.

pub mod cgroup;
pub mod clients;
pub mod control;
pub mod helpers;
pub mod hook;
pub mod kernel;
pub mod machine;
pub mod observe;
pub mod process;
pub mod rights;
pub mod safety;
