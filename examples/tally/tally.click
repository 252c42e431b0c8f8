// SPDX-License-Identifier: MIT OR Apache-2.0
// Two classes that Castanet does not have: sizes checked, then packets by the value of their first byte.
//
//     castanet build-package examples/tally -o examples/tally/tally.castanet
//     castanet run examples/tally/tally.click -h tally.tally
//
// It prints the packets of each output of `tally`: 0 of the first, 20 of the second, 30 of the third. So does a program that the
// classes are linked into: `cargo run -p castanet-tally -- examples/tally/tally.click`.

require(package tally);

InfiniteSource(DATA \<01 aa bb cc>, LIMIT 20) -> sizes :: CheckSize(4, 64);
InfiniteSource(DATA \<02 aa bb cc>, LIMIT 30) -> sizes;
InfiniteSource(DATA \<00>, LIMIT 40) -> sizes;              // too short

sizes -> tally :: TallySwitch(OFFSET 0);
tally [0] -> Discard;
tally [1] -> Discard;
tally [2] -> last :: Counter(COUNT_CALL 30 stop) -> Discard;
