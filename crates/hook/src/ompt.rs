//! Barriers that LLVM's OpenMP reports by OMPT: how many a program passes per second is its
//! progress.
//!
//! Barriers that this library does not replace are not counted otherwise. LLVM's runtime (and
//! Intel's) calls a *tool* at each, if there is one when it begins: it looks for `ompt_start_tool`
//! (OpenMP 5.0, section 4.2). This library is that tool for a program if cosched decides its thread
//! count, since such policies need its progress. It is the tool of no other program, because a
//! runtime with a tool does a little more at every region. A tool of the user's, in the program or
//! by `OMP_TOOL_LIBRARIES`, always comes first.
//!
//! Where cosched requests that all regions and barriers are counted, the entries count them
//! (`link`), with every runtime. The runtime reports each thread at each barrier; the first of a
//! team counts. gcc's runtime knows no tools.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute;
use core::ptr::null_mut;

use cosched_page::Page;

use crate::barrier::pool;
use crate::link;
use crate::runtime::OneFunction;
use crate::sys;

/// What the runtime keeps for a tool, for each task or region.
#[repr(C)]
struct Data {
    value: u64,
}

/// The runtime's function that finds its other functions, by their names.
///
/// # Safety
/// Calls are sound with a text that ends with a zero byte, while the runtime calls the tool.
// SAFETY: only a type; it is `ompt_function_lookup_t` of the OpenMP standard.
type Lookup = unsafe extern "C" fn(*const c_char) -> *mut c_void;

/// What the runtime gets from a tool.
#[repr(C)]
struct Tool {
    // SAFETY: only types; they are `ompt_initialize_t` and `ompt_finalize_t` of the standard.
    initialize: unsafe extern "C" fn(Lookup, c_int, *mut Data) -> c_int,
    finalize: unsafe extern "C" fn(*mut Data),
    data: Data,
}

/// Numbers of the standard: of events, of the beginning of a scope, and of waits that are not at a
/// barrier.
const IMPLICIT_TASK: c_int = 7;
const SYNC_REGION: c_int = 23;
const BEGIN: c_int = 1;
const NO_BARRIER: [c_int; 3] = [5, 6, 7];
/// The flag of a task that is no member of a team.
const INITIAL: c_int = 1;

/// Noted with the task of the first thread of a team.
const FIRST: u64 = 1;

/// Has the runtime report tasks and barriers. Returns 0 where it cannot, else 1.
///
/// # Safety
/// `lookup` has to be the runtime's own function.
unsafe extern "C" fn initialize(lookup: Lookup, _: c_int, _: *mut Data) -> c_int {
    // SAFETY: only a type; it is `ompt_set_callback_t` of the OpenMP standard.
    type SetCallback = unsafe extern "C" fn(c_int, *const c_void) -> c_int;
    // SAFETY: the runtime gives its own function, which takes names and answers with a function of
    // the standard's type, or null. `begins` and `at_barrier` have the types of the two events.
    unsafe {
        let set = lookup(c"ompt_set_callback".as_ptr());
        if set.is_null() {
            return 0;
        }
        let set = transmute::<*mut c_void, SetCallback>(set);
        set(IMPLICIT_TASK, begins as *const c_void);
        set(SYNC_REGION, at_barrier as *const c_void);
    }
    1
}

/// The runtime ends.
///
/// # Safety
/// Any call is sound: it does nothing. It is `unsafe` because [`Tool`] takes such functions.
unsafe extern "C" fn finalize(_: *mut Data) {}

/// A thread begins its part of a region, or ends it.
///
/// # Safety
/// `task` has to be null, or the runtime's memory for this task, which no other thread uses now.
unsafe extern "C" fn begins(
    what: c_int,
    _: *mut Data,
    task: *mut Data,
    team: c_uint,
    number: c_uint,
    kind: c_int,
) {
    if what == BEGIN && kind & INITIAL == 0 && team > 1 && number == 0 {
        // SAFETY: null, or the runtime's memory for this task, which is for the tool to write.
        if let Some(task) = unsafe { task.as_mut() } {
            task.value = FIRST;
        }
    }
}

/// A thread comes to a place where it waits for others, or leaves it.
///
/// # Safety
/// `task` has to be null, or the runtime's memory for this task, which no other thread uses now.
unsafe extern "C" fn at_barrier(
    kind: c_int,
    what: c_int,
    _: *mut Data,
    task: *mut Data,
    _: *const c_void,
) {
    // SAFETY: null, or the runtime's memory for this task.
    let is_first = unsafe { task.as_ref() }.is_some_and(|task| task.value == FIRST);
    if what == BEGIN && is_first && !NO_BARRIER.contains(&kind) {
        pool::saw_barrier();
    }
}

/// Gives the runtime its tool; null: there is none.
///
/// # Safety
/// As the OpenMP standard has it: `runtime` is a text that ends with a zero byte.
// SAFETY: the name and the type are those of the OpenMP standard.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompt_start_tool(version: c_uint, runtime: *const c_char) -> *mut c_void {
    static REAL: OneFunction = OneFunction::named("ompt_start_tool\0");
    static mut OURS: Tool = Tool { initialize, finalize, data: Data { value: 0 } };
    // SAFETY: only a type; it is that of the function around it.
    type StartTool = unsafe extern "C" fn(c_uint, *const c_char) -> *mut c_void;
    let real = REAL.after_ours();
    if real != 0 {
        // SAFETY: a function of this name has this type.
        let other = unsafe { transmute::<usize, StartTool>(real)(version, runtime) };
        if !other.is_null() {
            return other;
        }
    }
    const OTHERS: &CStr = c"OMP_TOOL_LIBRARIES";
    let is_needed = || {
        let rule = link::page().map(Page::rule).unwrap_or_default();
        rule.managed && !rule.donate && !rule.counts
    };
    match sys::variable(OTHERS).is_none() && is_needed() {
        true => (&raw mut OURS).cast(),
        false => null_mut(),
    }
}
