// SPDX-License-Identifier: MIT OR Apache-2.0
// The cost of a queue: `castanet bench fig8` runs two configurations alternately.

define($LIMIT 1000000, $BURST 32);

plain :: MemSource(LIMIT $LIMIT, BURST $BURST, STOP true) -> Discard;
queued :: MemSource(LIMIT $LIMIT, BURST $BURST, STOP true) -> Queue -> Unqueue($BURST) -> Discard;
