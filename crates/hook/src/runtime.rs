//! Finding the function that ours replaces: that of the runtime which the caller would have called
//! without this library.
//!
//! The dynamic linker searches a name in the program and the libraries that it was started with.
//! For a library that was opened later (every extension module of Python), it then searches that
//! library's own dependencies. All of them find our function first, so the intended one has to be
//! found again: the linker's next one if there is one, else the one among the dependencies of the
//! caller's library. The calling library is known by an address in it: of the outlined body of a
//! region, or of a constant that the compiler passes along. Two modules with a runtime each
//! therefore keep their own.
//!
//! Found functions stay valid: their libraries are opened once more, so that they cannot be
//! unloaded.

use core::ffi::{CStr, c_int, c_void};
use core::mem::zeroed;
use core::ptr::null_mut;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::sys::{self, Errno};

/// A function of a runtime, for each library that calls. `CALLERS` libraries are remembered; for
/// others it is searched each time.
pub(crate) struct Function<const CALLERS: usize = 64> {
    name: &'static CStr,
    callers: [Caller; CALLERS],
}

/// A function that is the same for all callers.
pub(crate) type OneFunction = Function<1>;

/// A library that calls. It may have thousands of regions, and a search takes longer than many a
/// region.
struct Caller {
    /// Where it begins; 0: none yet. Never changes again.
    from: AtomicUsize,
    /// Where it ends; 0: the function is not known yet.
    to: AtomicUsize,
    function: AtomicUsize,
}

impl Caller {
    const fn none() -> Caller {
        Caller { from: AtomicUsize::new(0), to: AtomicUsize::new(0), function: AtomicUsize::new(0) }
    }
}

impl<const CALLERS: usize> Function<CALLERS> {
    /// The function of this name, which ends with a zero byte.
    pub(crate) const fn named(name: &'static str) -> Function<CALLERS> {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("the name has to end with a zero byte, and have no other"),
        };
        Function { name, callers: [const { Caller::none() }; CALLERS] }
    }

    /// The address of the function for the library that contains `key` (not null); 0: there is
    /// none.
    #[inline]
    pub(crate) fn of(&self, key: *const c_void) -> usize {
        for caller in &self.callers {
            let from = caller.from.load(Acquire);
            if from == 0 {
                break;
            }
            if (from..caller.to.load(Acquire)).contains(&(key as usize)) {
                return caller.function.load(Relaxed);
            }
        }
        self.find_and_note(key)
    }

    #[cold]
    fn find_and_note(&self, key: *const c_void) -> usize {
        let function = self.find_for(key);
        let Some((from, to)) = extent_around(key).filter(|_| function != 0) else {
            return function;
        };
        for caller in &self.callers {
            match caller.from.compare_exchange(0, from, Acquire, Acquire) {
                Ok(_) => {
                    caller.function.store(function, Relaxed);
                    caller.to.store(to, Release);
                    break;
                }
                // Another thread notes it just now.
                Err(other) if other == from => break,
                Err(_) => {}
            }
        }
        function
    }

    #[cold]
    fn find_for(&self, key: *const c_void) -> usize {
        let _errno = Errno::keep();
        // SAFETY: the names end with a zero byte; a library that is opened again has been loaded
        // before, so none of its constructors runs, and its handle is kept, so that what is found
        // in it stays.
        unsafe {
            let next = libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr());
            if !next.is_null() {
                return next as usize;
            }
            let mut library: libc::Dl_info = zeroed();
            if libc::dladdr(key, &mut library) == 0 || library.dli_fname.is_null() {
                return 0;
            }
            let handle = libc::dlopen(library.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if !handle.is_null() {
                let found = not_ours(libc::dlsym(handle, self.name.as_ptr()));
                if found != 0 {
                    return found;
                }
            }
            self.load()
        }
    }

    /// Loads the function of a runtime that is not loaded yet. When a program is linked with this
    /// library, the linker finds the names here, and may leave the runtime out.
    fn load(&self) -> usize {
        let name = self.name.to_bytes();
        let runtimes: &[&CStr] = match () {
            () if name.starts_with(b"GOMP_") => &[c"libgomp.so.1"],
            () if name.starts_with(b"__kmpc_") => &[c"libomp.so.5", c"libomp.so", c"libiomp5.so"],
            () if name.starts_with(b"omp_") || name.starts_with(b"pthread_") => &[],
            () => &[c"libopenblas.so.0", c"libblas.so.3"],
        };
        for runtime in runtimes {
            // SAFETY: the names end with a zero byte. A runtime is made to be loaded at any time;
            // where every library sees it, its other functions are found, too.
            let found = unsafe {
                let handle = libc::dlopen(runtime.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL);
                if handle.is_null() {
                    continue;
                }
                not_ours(libc::dlsym(handle, self.name.as_ptr()))
            };
            if found != 0 {
                return found;
            }
        }
        0
    }

    /// As [`of_anybody`](Function::of_anybody), for a function that was called and therefore
    /// exists.
    pub(crate) fn called(&self, part: &[u8]) -> usize {
        let found = self.of_anybody(part);
        let loaded = if found == 0 { self.load() } else { found };
        if loaded == 0 {
            self.is_lost();
        }
        if let Some(known) = self.callers.first().filter(|_| found == 0) {
            known.function.store(loaded, Release);
        }
        loaded
    }

    /// The function after ours, or of the first library with `part` in its path that has one, else
    /// of the first library that has one. For callers that give no address.
    pub(crate) fn of_anybody(&self, part: &[u8]) -> usize {
        const NONE: usize = 1;
        let Some(known) = self.callers.first() else { return 0 };
        match known.function.load(Acquire) {
            0 => {
                let found = self.search(part);
                known.function.store(found.max(NONE), Release);
                found
            }
            NONE => 0,
            found => found,
        }
    }

    /// The function that the linker finds after ours; 0: there is none.
    pub(crate) fn after_ours(&self) -> usize {
        let _errno = Errno::keep();
        // SAFETY: the name ends with a zero byte.
        unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) as usize }
    }

    #[cold]
    fn search(&self, part: &[u8]) -> usize {
        let next = self.after_ours();
        if next != 0 {
            return next;
        }
        let _errno = Errno::keep();
        for part in [part, b""] {
            let mut found = 0;
            each_library(part, |handle| {
                // SAFETY: the name ends with a zero byte, and the library is open.
                found = not_ours(unsafe { libc::dlsym(handle, self.name.as_ptr()) });
                found == 0
            });
            if found != 0 {
                return found;
            }
        }
        0
    }

    /// Calls `act` with the function of every library that has its own, or with the one after ours.
    pub(crate) fn for_each(&self, part: &[u8], mut act: impl FnMut(usize)) {
        // SAFETY: the name ends with a zero byte.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if !next.is_null() {
            return act(next as usize);
        }
        each_library(part, |handle| {
            // SAFETY: the name ends with a zero byte, and the library is open.
            let found = not_ours(unsafe { libc::dlsym(handle, self.name.as_ptr()) });
            if found != 0 {
                act(found);
            }
            true
        });
    }

    /// Ends the program: the function was called, and the call cannot be passed on.
    #[cold]
    pub(crate) fn cannot_be_served(&self, why: &[u8]) -> ! {
        let remedy = b"; leave malleable = true and barrier = \"donate\" out for this program\n";
        sys::complain(&[b"cosched: ", self.name.to_bytes(), b" was called, and ", why, remedy]);
        // SAFETY: ends the program.
        unsafe { libc::abort() }
    }

    /// Ends the program: there is no such function.
    #[cold]
    pub(crate) fn is_lost(&self) -> ! {
        self.cannot_be_served(b"no runtime has it")
    }
}

/// A function that is not this library's.
fn not_ours(function: *mut c_void) -> usize {
    let own = base_of(&raw const OWN as *const c_void);
    if function.is_null() || base_of(function) == own { 0 } else { function as usize }
}

static OWN: u8 = 0;

fn base_of(address: *const c_void) -> usize {
    // SAFETY: an all-zero answer is one; the call writes only it, and takes any address.
    unsafe {
        let mut library: libc::Dl_info = zeroed();
        match libc::dladdr(address, &mut library) {
            0 => 0,
            _ => library.dli_fbase as usize,
        }
    }
}

/// The path of a library, copied: its own memory may be freed when the list is no longer locked.
struct Path {
    /// How many matching libraries to skip.
    skip: usize,
    part: *const [u8],
    text: [u8; 4096],
}

/// Opens one library after the other that has `part` in its path, until `act` says no.
fn each_library(part: &[u8], mut act: impl FnMut(*mut c_void) -> bool) {
    let mut path = Path { skip: 0, part, text: [0; 4096] };
    // No program has as many.
    for skip in 0..4096 {
        path.skip = skip;
        // SAFETY: the function is called with what it expects, while all of it lives.
        if unsafe { libc::dl_iterate_phdr(Some(note_path), (&raw mut path).cast()) } == 0 {
            return;
        }
        // SAFETY: the text ends with a zero byte.
        let handle =
            unsafe { libc::dlopen(path.text.as_ptr().cast(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            continue;
        }
        if !act(handle) {
            return;
        }
        // SAFETY: opened just now.
        unsafe { libc::dlclose(handle) };
    }
}

/// Copies the path of a library, if it fits and is not to be skipped. Returns 1 then, else 0.
///
/// # Safety
/// `info` has to be an entry of `dl_iterate_phdr`, and `path` a [`Path`] that nothing else uses
/// now.
unsafe extern "C" fn note_path(
    info: *mut libc::dl_phdr_info,
    _: usize,
    path: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` gives a valid entry, and what `each_library` passes along.
    let (name, path) = unsafe {
        let name = (*info).dlpi_name;
        if name.is_null() {
            return 0;
        }
        (CStr::from_ptr(name).to_bytes(), &mut *path.cast::<Path>())
    };
    // SAFETY: it lives as long as `each_library` runs.
    let part = unsafe { &*path.part };
    // The program itself has no name here, and was searched before.
    if name.is_empty() || name.len() >= path.text.len() || !contains(name, part) {
        return 0;
    }
    if path.skip > 0 {
        path.skip -= 1;
        return 0;
    }
    for (to, from) in path.text.iter_mut().zip(name.iter().chain(&[0])) {
        *to = *from;
    }
    1
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

/// The program's own executable: where it lies, and whether it has thread-local variables.
struct Executable {
    from: AtomicUsize,
    to: AtomicUsize,
    has_thread_variables: AtomicUsize,
}

static EXECUTABLE: Executable = Executable {
    from: AtomicUsize::new(usize::MAX),
    to: AtomicUsize::new(0),
    has_thread_variables: AtomicUsize::new(0),
};

/// Whether the code at this address is the program's own and the program has thread-local
/// variables. They may be OpenMP's `threadprivate`, which keep their values from region to region
/// only with an equal number of threads.
#[inline]
pub(crate) fn may_be_thread_private(code: *const c_void) -> bool {
    if EXECUTABLE.to.load(Acquire) == 0 {
        // SAFETY: the function is called with what it expects.
        unsafe { libc::dl_iterate_phdr(Some(note_executable), null_mut()) };
    }
    let code = code as usize;
    EXECUTABLE.has_thread_variables.load(Relaxed) == 1
        && (EXECUTABLE.from.load(Relaxed)..EXECUTABLE.to.load(Relaxed)).contains(&code)
}

/// Notes where the program's executable lies. Returns 1, so that no other entry follows.
///
/// # Safety
/// `info` has to be an entry of `dl_iterate_phdr`.
unsafe extern "C" fn note_executable(
    info: *mut libc::dl_phdr_info,
    _: usize,
    _: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` gives a valid entry; the program's comes first.
    let (from, to, has_thread_variables) = unsafe { extent(info) };
    EXECUTABLE.has_thread_variables.store(has_thread_variables.into(), Relaxed);
    EXECUTABLE.from.store(from, Relaxed);
    EXECUTABLE.to.store(to, Release);
    1
}

/// The extent of a library, and whether it has thread-local variables.
///
/// # Safety
/// The entry has to be one of `dl_iterate_phdr`.
unsafe fn extent(info: *const libc::dl_phdr_info) -> (usize, usize, bool) {
    // SAFETY: it is a valid entry with so many headers.
    let (base, headers) = unsafe {
        let info = &*info;
        (
            info.dlpi_addr as usize,
            core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
        )
    };
    let (mut from, mut to, mut has_thread_variables) = (usize::MAX, 1, false);
    for header in headers {
        let start = base.wrapping_add(header.p_vaddr as usize);
        match header.p_type {
            libc::PT_LOAD => {
                from = from.min(start);
                to = to.max(start.wrapping_add(header.p_memsz as usize));
            }
            libc::PT_TLS => has_thread_variables = true,
            _ => {}
        }
    }
    (from, to, has_thread_variables)
}

/// A search for the library around an address.
struct Around {
    address: usize,
    found: Option<(usize, usize)>,
}

/// The extent of the library that an address belongs to.
fn extent_around(address: *const c_void) -> Option<(usize, usize)> {
    let mut around = Around { address: address as usize, found: None };
    // SAFETY: the function is called with what it expects, while all of it lives.
    unsafe { libc::dl_iterate_phdr(Some(note_extent), (&raw mut around).cast()) };
    around.found
}

/// Notes the extent of a library, if the address lies in it. Returns 1 then, else 0.
///
/// # Safety
/// `info` has to be an entry of `dl_iterate_phdr`, and `around` an [`Around`] that nothing else
/// uses now.
unsafe extern "C" fn note_extent(
    info: *mut libc::dl_phdr_info,
    _: usize,
    around: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` gives a valid entry, and what `extent_around` passes along.
    let ((from, to, _), around) = unsafe { (extent(info), &mut *around.cast::<Around>()) };
    if !(from..to).contains(&around.address) {
        return 0;
    }
    around.found = Some((from, to));
    1
}
