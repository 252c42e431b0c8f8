// SPDX-License-Identifier: MIT OR Apache-2.0
// A small firewall between the network 10.0.0.0/8 and the rest, tried on packets that are made on the spot.
//
//     castanet run -q --simtime conf/firewall.click -h passed.count -h blocked.count
//
// prints
//
//     passed.count:
//     20
//
//     blocked.count:
//     20
//
// `castanet run conf/firewall.click -h rules.program` shows what the rules became: one decision tree.

elementclass Send { $from, $to, $port |
    InfiniteSource(DATA "payload", LIMIT 10, STOP true) -> UDPIPEncap($from, 40000, $to, $port) -> output;
}

rules :: IPFilter(
    deny  src net 10.0.0.0/8 and dst net 10.0.0.0/8,        // stays inside, so it has no business here
    allow src net 10.0.0.0/8 and (dst port 53 or dst port 123),
    allow dst host 10.0.0.80 and dst port 443,
    1     all);

Send(10.0.0.5, 192.0.2.1, 53) -> rules;         // a name is asked for: passes
Send(10.0.0.5, 192.0.2.1, 25) -> rules;         // mail from inside: blocked
Send(198.51.100.7, 10.0.0.80, 443) -> rules;    // to the web server: passes
Send(198.51.100.7, 10.0.0.5, 443) -> rules;     // to any other host: blocked
Send(10.0.0.5, 10.0.0.6, 53) -> rules;          // inside: denied, which is to say dropped

rules [0] -> passed :: Counter -> Discard;
rules [1] -> blocked :: Counter -> Discard;

DriverManager(pause, pause, pause, pause, pause);
