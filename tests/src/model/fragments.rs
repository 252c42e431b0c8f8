// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that fragments belong to a packet (RFC 791, 2.3 and 3.2).
use super::masked::{Fields, Masked};
use super::options;
use super::router::MTU;

/// Describes what is wrong with the fragments of a packet; `None` if they are correct. The fragments are in the order
/// of transmission.
pub(super) fn fault(want: &Masked, fragments: &[&[u8]]) -> Option<String> {
    let whole = Fields::of(&want.bytes)?;
    let mut done = 0;
    for (n, fragment) in fragments.iter().enumerate() {
        let last = n + 1 == fragments.len();
        let fault = |text: String| Some(format!("fragment {n}: {text}"));
        let Some(piece) = Fields::of(fragment) else { return fault("bad header length".to_owned()) };
        if fragment.len() > MTU {
            return fault(format!("{} bytes are more than {MTU}", fragment.len()));
        }
        if !last && !piece.payload().len().is_multiple_of(8) {
            return fault(format!("{} bytes of data are not a multiple of 8", piece.payload().len()));
        }
        let Some(payload) = whole.payload().get(done..done + piece.payload().len()) else {
            return fault("more data than the packet has".to_owned());
        };
        let options = if n == 0 { whole.options().to_vec() } else { options::copied(whole.options()) };
        let expected = fragment_of(whole, &options, done, !last || whole.more_fragments(), payload);
        let stamps = if n == 0 { want.stamps.clone() } else { Vec::new() };
        if let Some(text) = (Masked { bytes: expected, stamps }).fault(fragment) {
            return fault(text);
        }
        done += payload.len();
    }
    (done < whole.payload().len()).then(|| format!("only {done} of {} bytes of data", whole.payload().len()))
}

/// Builds the expected fragment, except for its checksum.
fn fragment_of(whole: Fields<'_>, options: &[u8], done: usize, more: bool, payload: &[u8]) -> Vec<u8> {
    let mut header = whole.packet[..20].to_vec();
    let length = 20 + options.len() + payload.len();
    header[0] = 0x40 | u8::try_from((20 + options.len()) / 4).unwrap_or(15);
    header[2..4].copy_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    let offset = (whole.fragment_offset() + done) / 8;
    let flags = u16::from(more) << 13 | u16::try_from(offset).unwrap_or(u16::MAX);
    header[6..8].copy_from_slice(&flags.to_be_bytes());
    [&header[..], options, payload].concat()
}
