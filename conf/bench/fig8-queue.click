// SPDX-License-Identifier: MIT OR Apache-2.0
// What a queue costs: `castanet bench fig8` runs the two in turns.

define($LIMIT 1000000, $BURST 32);

plain :: MemSource(LIMIT $LIMIT, BURST $BURST, STOP true) -> Discard;
queued :: MemSource(LIMIT $LIMIT, BURST $BURST, STOP true) -> Queue -> Unqueue($BURST) -> Discard;
