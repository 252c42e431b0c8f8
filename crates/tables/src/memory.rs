// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hints to the processor and to the kernel about the memory of large tables. They change speed only.
#![allow(unsafe_code)]

/// The size of memory from which on huge pages are worth it, in bytes.
#[cfg(all(target_os = "linux", not(miri)))]
const LARGE: usize = 4 << 20;

/// Starts to load an item into the cache. `at` may be out of range.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let place = items.as_ptr().wrapping_add(at);
        // SAFETY: every processor of this target has SSE. A prefetch reads nothing that the program can see, and does not
        // fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse", not(miri))))]
    let _ = (items, at);
}

/// Asks the kernel to use huge pages for the memory of a large vector, so that random accesses need fewer page table
/// entries. Vectors of less than 4 MiB are left alone.
pub(crate) fn prefer_huge_pages<T>(items: &mut Vec<T>) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const PAGE: usize = 4096;
        let bytes = items.capacity().saturating_mul(size_of::<T>());
        if bytes < LARGE {
            return;
        }
        let start = items.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE).min(bytes);
        let len = (bytes - skipped) / PAGE * PAGE;
        // SAFETY: the whole pages from `start + skipped` on lie inside the vector's allocation. The advice does not change
        // their contents. A failure only costs speed.
        unsafe {
            libc::madvise(start.add(skipped).cast(), len, libc::MADV_HUGEPAGE);
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = items;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_change_nothing() {
        for n in [0, 1, 1000, (5 << 20) / 8 + 3] {
            let mut items: Vec<u64> = (0..n).collect();
            prefer_huge_pages(&mut items);
            for at in [0, 1, usize::MAX, items.len()] {
                prefetch(&items, at);
            }
            assert!(items.iter().copied().eq(0..n));
        }
    }
}
