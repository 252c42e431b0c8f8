// SPDX-License-Identifier: MIT OR Apache-2.0
//! A library to load before the C library (LD_PRELOAD). It adds an offset to the time of day. The file `$SOAK_CLOCK`
//! contains the offset in seconds, as a 64-bit number. Tests use it to make a router's clock jump.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;

/// The C library's `clock_gettime`, and the offset in the mapped file.
struct Parts {
    real: Option<ClockGettime>,
    offset: Option<&'static AtomicI64>,
}

static PARTS: OnceLock<Parts> = OnceLock::new();

/// Maps the file `$SOAK_CLOCK`, which contains the offset. `None` if there is no such file.
fn offset() -> Option<&'static AtomicI64> {
    const NAME: &CStr = c"SOAK_CLOCK";
    // SAFETY: the name is a C string. No other thread changes the environment: this runs before `main`.
    let path = unsafe { libc::getenv(NAME.as_ptr()) };
    if path.is_null() {
        return None;
    }
    // SAFETY: the path is a C string of the environment.
    let file = unsafe { libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    // SAFETY: a new mapping of a file of 8 bytes, which is never unmapped.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), 8, libc::PROT_READ, libc::MAP_SHARED, file, 0) };
    // SAFETY: the descriptor is open and not used again.
    unsafe { libc::close(file) };
    // SAFETY: the mapping begins at a page, is long enough, and is only read.
    (memory != libc::MAP_FAILED).then(|| unsafe { &*memory.cast::<AtomicI64>() })
}

fn parts() -> &'static Parts {
    PARTS.get_or_init(|| {
        // SAFETY: the name is a C string.
        let found: *mut c_void = unsafe { libc::dlsym(libc::RTLD_NEXT, c"clock_gettime".as_ptr()) };
        // SAFETY: the C library's function has this type.
        let real =
            (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, ClockGettime>(found) });
        Parts { real, offset: offset() }
    })
}

/// Returns the time of a clock. The offset is added if the clock is the time of day.
///
/// # Safety
/// As for `clock_gettime` of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    let parts = parts();
    let Some(real) = parts.real else { return -1 };
    // SAFETY: the caller's pointer is passed on.
    let result = unsafe { real(clock, time) };
    if result == 0
        && clock == libc::CLOCK_REALTIME
        && let Some(offset) = parts.offset
    {
        // SAFETY: the C library has just written to it.
        unsafe { (*time).tv_sec += offset.load(Relaxed) };
    }
    result
}
