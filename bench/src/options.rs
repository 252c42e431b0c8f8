// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simple processing of IP options in a router (RFC 791 section 3.1).

/// The result of processing the options of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// Nothing was changed.
    Unchanged,
    /// An option was filled in, so the checksum must be recomputed.
    Changed,
    /// The options are malformed.
    Bad,
}

/// Fills in record route and timestamp options. `address` is the router's address on this interface, `mine`
/// holds all addresses of the router, and `time` is in milliseconds since midnight UT.
pub fn fill(options: &mut [u8], address: u32, mine: &[u32], time: u32) -> Filled {
    let mut filled = Filled::Unchanged;
    let mut rest = options;
    loop {
        let len = match rest {
            [] | [0, ..] => return filled,
            [1, ..] => 1,
            [_, len, ..] if *len >= 2 => usize::from(*len),
            _ => return Filled::Bad,
        };
        let Some((option, after)) = rest.split_at_mut_checked(len) else { return Filled::Bad };
        let this = match option.first() {
            Some(7) => record_route(option, address),
            Some(68) => timestamp(option, address, mine, time),
            _ => Filled::Unchanged,
        };
        match this {
            Filled::Bad => return Filled::Bad,
            Filled::Changed => filled = Filled::Changed,
            Filled::Unchanged => {}
        }
        rest = after;
    }
}

fn record_route(option: &mut [u8], address: u32) -> Filled {
    let Some(&pointer) = option.get(2).filter(|p| **p >= 4) else { return Filled::Bad };
    let at = usize::from(pointer) - 1;
    if at >= option.len() {
        return Filled::Unchanged;
    }
    let Some(place) = option.get_mut(at..at + 4) else { return Filled::Bad };
    place.copy_from_slice(&address.to_be_bytes());
    advance(option, 4)
}

fn timestamp(option: &mut [u8], address: u32, mine: &[u32], time: u32) -> Filled {
    let &[_, _, pointer, flags, ..] = &*option else { return Filled::Bad };
    if pointer < 5 {
        return Filled::Bad;
    }
    let at = usize::from(pointer) - 1;
    if at >= option.len() {
        // The maximum of the overflow counter is 15.
        return match (flags.checked_add(0x10), option.get_mut(3)) {
            (Some(more), Some(place)) => {
                *place = more;
                Filled::Changed
            }
            _ => Filled::Bad,
        };
    }
    let stamp = time.to_be_bytes();
    match flags & 15 {
        0 => {
            let Some(place) = option.get_mut(at..at + 4) else { return Filled::Bad };
            place.copy_from_slice(&stamp);
            advance(option, 4)
        }
        form @ (1 | 3) => {
            let Some((place, stamped)) =
                option.get_mut(at..at + 8).and_then(|o| o.split_first_chunk_mut::<4>())
            else {
                return Filled::Bad;
            };
            if form == 1 {
                *place = address.to_be_bytes();
            } else if !mine.contains(&u32::from_be_bytes(*place)) {
                return Filled::Unchanged;
            }
            stamped.copy_from_slice(&stamp);
            advance(option, 8)
        }
        _ => Filled::Bad,
    }
}

fn advance(option: &mut [u8], n: u8) -> Filled {
    if let Some(pointer) = option.get_mut(2) {
        *pointer = pointer.saturating_add(n);
    }
    Filled::Changed
}
