// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test cases: valid and invalid IP options.

use super::Maker;
use crate::trace::hosts::{ROUTER, near};

impl Maker<'_> {
    pub(super) fn record_route(&mut self) {
        // RFC 791, section 3.1: type 7, length, pointer (from 4), addresses.
        let empty = |slots: u8| {
            let length = 3 + 4 * slots;
            let mut option = vec![7, length, 4];
            option.resize(usize::from(length), 0);
            option
        };
        let mut options: Vec<Vec<u8>> = vec![empty(1), empty(2), empty(9)];
        // An option after a no-operation; an option with one of three slots free; full options, which pass unchanged.
        options.push([vec![1], empty(3)].concat());
        options.push([vec![7, 15, 12], vec![9; 8], vec![0; 4]].concat());
        options.push([vec![7, 15, 16], vec![9; 12]].concat());
        options.push([vec![7, 7, 8], vec![9; 4]].concat());
        // Invalid options: pointers below 4, space for only three bytes, lengths that exceed the header or are too
        // small.
        options.push(vec![7, 7, 3, 0, 0, 0, 0]);
        options.push(vec![7, 7, 0, 0, 0, 0, 0]);
        options.push([vec![7, 10, 8], vec![9; 7]].concat());
        options.push(vec![7, 40, 4, 0]);
        options.push(vec![7, 1, 4, 0]);
        options.push(vec![7, 0, 4, 0]);
        options.push(vec![1, 1, 1, 7]);
        for option in &options {
            for size in [0, 64, 700] {
                let packet = self.udp(size).options(option);
                self.push(&packet);
            }
        }
        // Invalid options take precedence over an expired time to live.
        let packet = self.udp(9).options(&[7, 7, 3, 0, 0, 0, 0]).ttl(1);
        self.push(&packet);
        let packet = self.udp(9).options(&empty(2)).ttl(1);
        self.push(&packet);
    }

    pub(super) fn timestamps(&mut self) {
        // RFC 791, section 3.1: type 68, length, pointer (from 5), overflow and flag, entries.
        let option = |length: u8, pointer: u8, overflow_flag: u8, entries: &[u8]| {
            let mut option = vec![68, length, pointer, overflow_flag];
            option.extend(entries);
            option.resize(usize::from(length), 0);
            option
        };
        let here = ROUTER[1 - self.interface].octets();
        let other_side = ROUTER[self.interface].octets();
        let options = [
            // Options that ask for timestamps only; for addresses and timestamps; for timestamps at given addresses,
            // which are those of the router's interfaces or another host's.
            option(8, 5, 0, &[]),
            option(40, 5, 0, &[]),
            option(12, 9, 0, &[0, 0, 1, 0]),
            option(12, 5, 1, &[]),
            option(20, 13, 1, &[9, 9, 9, 9, 0, 0, 1, 0]),
            option(12, 5, 3, &here),
            option(20, 5, 3, &other_side),
            option(12, 5, 3, &[9, 9, 9, 9]),
            // Full options: the overflow counter is incremented. If it is already 15, this is an error.
            option(8, 9, 0, &[0, 0, 1, 0]),
            option(12, 13, 0xd1, &[9, 9, 9, 9, 0, 0, 1, 0]),
            option(8, 9, 0xf0, &[0, 0, 1, 0]),
            // Invalid options: pointers below 5, and space for only half an entry.
            option(8, 4, 0, &[]),
            option(8, 0, 0, &[]),
            option(10, 9, 0, &[0, 0, 1, 0]),
            option(16, 13, 1, &[9, 9, 9, 9, 0, 0, 1, 0]),
            // Invalid: a length beyond the header.
            vec![68, 36, 5, 0, 0, 0, 0, 0],
        ];
        for option in &options {
            for size in [1, 90] {
                let packet = self.udp(size).options(option);
                self.push(&packet);
            }
        }
    }

    pub(super) fn source_routes(&mut self) {
        // Loose and strict source routes (131, 137), incomplete and complete. If the router is not the destination of
        // the packet, it leaves these options unchanged.
        for kind in [131, 137] {
            for pointer in [4, 12] {
                let hop = self.there().octets();
                let option = [&[kind, 11, pointer][..], &hop, &[7, 7, 7, 7]].concat();
                let packet = self.udp(33).options(&option);
                self.push(&packet);
                // A packet with a source route causes no redirect.
                let (src, dst) = (near(self.interface, 5), near(self.interface, 6));
                let packet = self.udp_between(src, dst, 12).options(&option);
                self.push(&packet);
            }
        }
        // The router ignores other options: router alert (RFC 2113), and an unknown one.
        for option in [&[148, 4, 0, 0][..], &[222, 3, 1]] {
            let packet = self.udp(3).options(option);
            self.push(&packet);
        }
    }
}
