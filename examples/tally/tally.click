// SPDX-License-Identifier: MIT OR Apache-2.0
// Two classes of a package: CheckSize checks the length of packets, TallySwitch classifies them by their first byte.
//
//     castanet build-package examples/tally -o examples/tally/tally.castanet
//     castanet run examples/tally/tally.click -h tally.tally
//
// It prints the number of packets of each output of `tally`: 0, 20 and 30. The program that the classes are linked into prints the
// same: `cargo run -p castanet-tally -- examples/tally/tally.click`.

require(package tally);

InfiniteSource(DATA \<01 aa bb cc>, LIMIT 20) -> sizes :: CheckSize(4, 64);
InfiniteSource(DATA \<02 aa bb cc>, LIMIT 30) -> sizes;
InfiniteSource(DATA \<00>, LIMIT 40) -> sizes;              // too short

sizes -> tally :: TallySwitch(OFFSET 0);
tally [0] -> Discard;
tally [1] -> Discard;
tally [2] -> last :: Counter(COUNT_CALL 30 stop) -> Discard;
