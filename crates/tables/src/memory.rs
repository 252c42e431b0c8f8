// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of large tables, with hints to the kernel that change speed only.
#![allow(unsafe_code)]

/// The size of memory from which on huge pages are worth it, in bytes.
const LARGE: usize = 4 << 20;
/// The size of a page of the allocator, in bytes.
const PAGE: usize = 4096;

/// Returns a capacity of at least `len` items for a vector that has huge pages. Huge pages have 2 MiB. The kernel aligns
/// memory to huge pages only if its size is a multiple of theirs, so a large capacity leaves the last page for what the
/// allocator adds.
fn huge_capacity<T>(len: usize) -> usize {
    const HUGE: usize = 2 << 20;
    let bytes = len.saturating_mul(size_of::<T>());
    if bytes < LARGE { len } else { ((bytes + PAGE).next_multiple_of(HUGE) - PAGE) / size_of::<T>() }
}

/// Makes room for `more` items in a vector, if it lacks it. The capacity grows by a quarter instead of doubling, because
/// the vectors of a large table hold most of its memory.
pub(crate) fn grow<T: Copy>(items: &mut Vec<T>, more: usize) {
    let len = items.len() + more;
    if len <= items.capacity() {
        return;
    }
    move_to_huge_pages(items, len.max(items.len() / 4 * 5 + 64));
}

/// Moves the items of a vector to new memory, with room for `len` items. A large vector then has huge pages: pages that are in
/// use already do not become such pages.
pub(crate) fn move_to_huge_pages<T: Copy>(items: &mut Vec<T>, len: usize) {
    let mut new = Vec::with_capacity(huge_capacity::<T>(len));
    prefer_huge_pages(&mut new);
    new.extend_from_slice(items);
    *items = new;
}

/// Asks the kernel to use huge pages for the memory of a large vector, so that random accesses need fewer page table
/// entries. Vectors of less than 4 MiB are left alone.
pub(crate) fn prefer_huge_pages<T>(items: &mut Vec<T>) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let bytes = items.capacity().saturating_mul(size_of::<T>());
        if bytes < LARGE {
            return;
        }
        // The pages at both ends also hold what the allocator adds. Without them, the kernel would have to divide its
        // mapping, and huge pages do not cross the parts.
        let before = items.as_ptr().addr() % PAGE;
        let start = items.as_mut_ptr().cast::<u8>().wrapping_sub(before);
        // SAFETY: all bytes of these pages are mapped, as those of the vector are. The advice changes neither their contents
        // nor who may access them. A failure only costs speed.
        unsafe {
            libc::madvise(start.cast(), (before + bytes).next_multiple_of(PAGE), libc::MADV_HUGEPAGE);
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
            assert!(items.iter().copied().eq(0..n));
        }
    }

    #[test]
    fn vectors_grow_by_at_least_a_quarter_and_keep_their_items() {
        let (mut items, mut moves) = (Vec::new(), 0);
        for n in 0..2_000_000_u32 {
            let before = items.capacity();
            grow(&mut items, 1);
            moves += usize::from(items.capacity() != before);
            items.push(n);
        }
        assert!(items.iter().copied().eq(0..2_000_000));
        assert!((10..60).contains(&moves), "{moves}");
        assert!(items.capacity() < 2_000_000 * 3 / 2, "{}", items.capacity());
    }

    #[test]
    fn large_capacities_fill_huge_pages() {
        assert_eq!([0, 1, 1000].map(huge_capacity::<u64>), [0, 1, 1000]);
        for bytes in [LARGE, LARGE + 1, 3 * LARGE - PAGE, 3 * LARGE] {
            let capacity = huge_capacity::<u8>(bytes);
            assert!(
                capacity >= bytes
                    && capacity < bytes + (2 << 20)
                    && (capacity + PAGE).is_multiple_of(2 << 20)
            );
        }
    }
}
