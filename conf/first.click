// SPDX-License-Identifier: MIT OR Apache-2.0
// A minimal configuration: packets are generated, counted and dropped.
//
//     castanet run -q --simtime conf/first.click -h c.count
//
// prints
//
//     250
//
// The source sends 100 packets a second and stops after 250, which takes 2.5 seconds. With --simtime the time is simulated, so
// the run ends at once; without it, the run takes real time.

RatedSource(RATE 100, LIMIT 250, STOP true)
    -> c :: Counter
    -> Discard;
