// SPDX-License-Identifier: MIT OR Apache-2.0
// Variables and compound elements: a compound that is used twice with different arguments.
//
//     castanet run -q --simtime conf/variables.click -h measured.count SECONDS=5 RATE=20
//
// prints
//
//     112
//
// The command line takes precedence over `define`. Without SECONDS and RATE the count is 14: in one second, eleven
// packets of one stream and three of the other, each with the first packet at time 0. `castanet flatten` shows the expanded compounds.

define($RATE 10, $SECONDS 1);

elementclass Stream { $rate, $text |
    RatedSource(DATA $text, RATE $rate) -> output;
}

measured :: Counter -> Discard;
Stream($RATE, "fast") -> measured;
Stream(2, "slow") -> measured;

DriverManager(wait ${SECONDS}s, stop);
