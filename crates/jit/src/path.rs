// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions as cranelift's intermediate code: a loop over the packets of a batch, and in it a block for each fragment and label.

mod fragment;

use crate::memory::{entry, signature};
use castanet_kernel::{Region, State};
use castanet_packet::layout;
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Type, Value as Ir, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::JITModule;
use cranelift_module::Module;

/// Packets and counters are where the caller says, and may be changed.
const MEMORY: MemFlagsData = MemFlagsData::new().with_notrap();

/// Returns the function that moves packets through a region.
pub(crate) fn function(region: &Region, module: &JITModule) -> Context {
    let mut context = module.make_context();
    context.func.signature = signature(module, 4, &[]);
    let mut builders = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut builders);
    let entry = entry(&mut builder);
    let (packets, n, ends, counters) = match *builder.block_params(entry) {
        [packets, n, ends, counters] => (packets, n, ends, counters),
        // The signature has four parameters.
        _ => unreachable!("a function with other parameters"),
    };
    let [next, done] = [builder.create_block(), builder.create_block()];
    let [at, out, end] = [types::I64; 3].map(|kind| builder.declare_var(kind));
    let bytes = builder.ins().ishl_imm_u(n, 3);
    let last = builder.ins().iadd(packets, bytes);
    builder.def_var(at, packets);
    builder.def_var(out, ends);
    let body = builder.create_block();
    let some = builder.ins().icmp_imm_s(IntCC::NotEqual, n, 0);
    builder.ins().brif(some, body, &[], done, &[]);

    builder.switch_to_block(body);
    let here = builder.use_var(at);
    let packet = builder.ins().load(types::I64, MEMORY, here, 0);
    let mut path = Path {
        region,
        builder,
        counters,
        next,
        out,
        end,
        packet: Fields { meta: packet, flags: packet, frame: packet, data: packet, length: packet },
        fragments: Vec::new(),
    };
    path.open();
    path.all_fragments();
    let mut builder = path.builder;
    builder.switch_to_block(next);
    let here = builder.use_var(out);
    // Ends have two bytes, and packets are pointers of eight.
    let following = builder.ins().iadd_imm_s(here, 2);
    builder.def_var(out, following);
    let here = builder.use_var(at);
    let following = builder.ins().iadd_imm_s(here, 8);
    builder.def_var(at, following);
    let more = builder.ins().icmp(IntCC::NotEqual, following, last);
    builder.ins().brif(more, body, &[], done, &[]);
    builder.switch_to_block(done);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    context
}

/// The facts that the code knows about the packet that it processes, as 64-bit numbers.
#[derive(Clone, Copy)]
struct Fields {
    /// The address of the packet's fields.
    meta: Ir,
    flags: Ir,
    /// The address of the first byte of the data, as the packet arrived.
    frame: Ir,
    /// The offset of that byte in the buffer.
    data: Ir,
    /// The length of the data, as the packet arrived.
    length: Ir,
}

struct Path<'a, 'b> {
    region: &'a Region,
    builder: FunctionBuilder<'b>,
    counters: Ir,
    /// The block that goes on with the next packet.
    next: Block,
    /// The address of the packet's end.
    out: Variable,
    /// The end of a shortened packet, from the start of the frame.
    end: Variable,
    packet: Fields,
    /// The blocks of the fragments.
    fragments: Vec<Block>,
}

impl Path<'_, '_> {
    /// Reads the fields of a packet. Packets that the code must not process leave by end 0.
    fn open(&mut self) {
        let b = &mut self.builder;
        let meta = self.packet.meta;
        self.fragments = self.region.fragments().iter().map(|_| b.create_block()).collect();
        let other = b.create_block();
        b.set_cold_block(other);
        let go_on = |b: &mut FunctionBuilder<'_>, holds: Ir| {
            let block = b.create_block();
            b.ins().brif(holds, block, &[], other, &[]);
            b.switch_to_block(block);
        };
        let flags = b.ins().uload8(types::I64, MEMORY, meta, layout::FLAGS as i32);
        let special = b.ins().band_imm_s(flags, i64::from(!layout::PLAIN));
        let plain = b.ins().icmp_imm_s(IntCC::Equal, special, 0);
        go_on(b, plain);
        let data = b.ins().uload32(MEMORY, meta, layout::DATA as i32);
        let network = self.region.fragments().first().and_then(|f| f.state().network);
        let header = b.ins().uload32(MEMORY, meta, layout::NETWORK as i32);
        match network {
            None => {
                let unset = b.ins().icmp_imm_s(IntCC::Equal, header, i64::from(layout::NOT_SET));
                go_on(b, unset);
            }
            Some((at, length)) => {
                let wanted = b.ins().iadd_imm_s(data, i64::from(at));
                let same = b.ins().icmp(IntCC::Equal, header, wanted);
                go_on(b, same);
                let transport = b.ins().uload32(MEMORY, meta, layout::TRANSPORT as i32);
                let wanted = b.ins().iadd_imm_s(header, i64::from(length));
                let same = b.ins().icmp(IntCC::Equal, transport, wanted);
                go_on(b, same);
            }
        }
        let length = b.ins().uload32(MEMORY, meta, layout::LENGTH as i32);
        // Elements describe tests of lengths below 2^16. A marked header lies within the data.
        let usual = b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, length, 0xffff);
        go_on(b, usual);
        if let Some((at, bytes)) = network {
            let end = i64::from(at) + i64::from(bytes);
            let inside = b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, length, end);
            go_on(b, inside);
        }
        let buffer = b.ins().load(types::I64, MEMORY, meta, layout::BUFFER as i32);
        let frame = b.ins().iadd(buffer, data);
        self.packet = Fields { meta, flags, frame, data, length };
        match self.fragments.first() {
            Some(&first) => b.ins().jump(first, &[]),
            None => b.ins().jump(other, &[]),
        };
        b.switch_to_block(other);
        self.leave(0);
    }

    fn all_fragments(&mut self) {
        let region = self.region;
        for (number, fragment) in region.fragments().iter().enumerate() {
            let Some(&block) = self.fragments.get(number) else { continue };
            self.builder.switch_to_block(block);
            self.fragment(fragment);
        }
    }

    /// Writes the number of the end by which the packet leaves, and goes on with the next packet.
    fn leave(&mut self, end: usize) {
        let b = &mut self.builder;
        let number = b.ins().iconst(types::I64, end as i64);
        let place = b.use_var(self.out);
        b.ins().istore16(MEMORY, number, place, 0);
        b.ins().jump(self.next, &[]);
    }

    /// Stores into the packet's fields what the state says about them.
    fn close(&mut self, state: &State) {
        let Fields { meta, flags, data, length, .. } = self.packet;
        let before = self.region.fragments().first().map(|f| f.state());
        let b = &mut self.builder;
        let store32 = |b: &mut FunctionBuilder<'_>, at: usize, number: Ir| {
            b.ins().istore32(MEMORY, number, meta, at as i32);
        };
        let start = i64::from(state.data);
        if start != 0 {
            let moved = b.ins().iadd_imm_s(data, start);
            store32(b, layout::DATA, moved);
        }
        if state.shortened {
            // An element may say what is not so: that the packet ends before its start, or behind the frame.
            let end = b.use_var(self.end);
            let end = b.ins().umin(end, length);
            let least = b.ins().iconst(types::I64, start);
            let end = b.ins().umax(end, least);
            let rest = b.ins().iadd_imm_s(end, -start);
            store32(b, layout::LENGTH, rest);
        } else if start != 0 {
            let rest = b.ins().iadd_imm_s(length, -start);
            store32(b, layout::LENGTH, rest);
        }
        if let Some(at) = state.mac.filter(|_| before.is_none_or(|s| s.mac != state.mac)) {
            let header = b.ins().iadd_imm_s(data, i64::from(at));
            store32(b, layout::MAC, header);
        }
        if let Some((at, bytes)) = state.network.filter(|_| before.is_none_or(|s| s.network != state.network))
        {
            let header = b.ins().iadd_imm_s(data, i64::from(at));
            store32(b, layout::NETWORK, header);
            let transport = b.ins().iadd_imm_s(header, i64::from(bytes));
            store32(b, layout::TRANSPORT, transport);
        }
        if state.packet_type != 0 {
            let kind = i64::from(state.packet_type) << layout::PACKET_TYPE;
            let with = b.ins().bor_imm_s(flags, kind);
            b.ins().istore8(MEMORY, with, meta, layout::FLAGS as i32);
        }
        let known = state.annotations.get(..Region::ANNOTATIONS).unwrap_or_default();
        let mut at = 0;
        while at < known.len() {
            let run = |bytes: usize| -> Option<i64> {
                let bytes = known.get(at..at + bytes)?;
                let all = bytes.iter().rev().try_fold(0u64, |n, byte| Some(n << 8 | u64::from((*byte)?)))?;
                Some(all.cast_signed())
            };
            let sizes: [(usize, Type); 4] =
                [(8, types::I64), (4, types::I32), (2, types::I16), (1, types::I8)];
            let found = sizes.into_iter().filter(|(bytes, _)| at.is_multiple_of(*bytes));
            let found = found.filter_map(|(bytes, kind)| Some((bytes, kind, run(bytes)?))).next();
            let Some((bytes, kind, number)) = found else {
                at += 1;
                continue;
            };
            let number = fragment::constant(b, kind, number);
            b.ins().store(MEMORY, number, meta, (layout::ANNOTATIONS + at) as i32);
            at += bytes;
        }
    }
}
