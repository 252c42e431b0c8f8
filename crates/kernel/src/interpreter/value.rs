// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of registers.

use super::fault::Reason;

/// Bound of the distance of a pointer from its memory (`BPF_MAX_VAR_OFF`), so that offsets cannot overflow.
const FAR: i64 = 1 << 29;

/// The value of a register, with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Uninitialized,
    Number(u64),
    /// The context (`struct xdp_md`).
    Context,
    /// An address in the stack, relative to register 10.
    Stack(i64),
    /// An address in the frame's buffer. It is stale if the epoch is not the current one.
    Packet {
        epoch: u64,
        end: bool,
        position: i64,
    },
    /// An address in the value of a map: the index of the entry in the execution's list, and the offset in the value.
    Entry {
        entry: usize,
        offset: i64,
    },
    /// A map: its index in the machine.
    Map(usize),
}

impl Value {
    /// The pointer moved by `distance` bytes.
    pub(super) fn moved(self, distance: i64, epoch: u64) -> Result<Value, Reason> {
        match self {
            Value::Stack(offset) => Ok(Value::Stack(sum(offset, distance)?)),
            Value::Packet { epoch: made, .. } if made != epoch => Err(Reason::StalePointer),
            Value::Packet { end: true, .. } => Err(Reason::EndPointer),
            Value::Packet { end, position, .. } => {
                Ok(Value::Packet { epoch, end, position: sum(position, distance)? })
            }
            Value::Entry { entry, offset } => Ok(Value::Entry { entry, offset: sum(offset, distance)? }),
            _ => Err(Reason::PointerArithmetic),
        }
    }
}

fn sum(offset: i64, distance: i64) -> Result<i64, Reason> {
    offset.checked_add(distance).filter(|sum| (-FAR + 1..FAR).contains(sum)).ok_or(Reason::FarPointer)
}
