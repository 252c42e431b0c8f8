// SPDX-License-Identifier: MIT OR Apache-2.0
// A screening router of 17 rules, as large as the firewall in ASPLOS 2002, section 4 ("Programming Language Optimizations
// for Modular Router Configurations"): packets from outside to the bastion host 10.1.0.1 and the news host 10.1.0.2.
//
//     castanet run -q --simtime conf/firewall.click -h sent.count -h passed.count -h blocked.count
//
// prints
//
//     sent.count:
//     33
//
//     passed.count:
//     15
//
//     blocked.count:
//     18
//
// `castanet run --simtime conf/firewall.click -h rules.program` shows the decision tree that the rules compile to.
// `castanet new firewall` writes a firewall with devices and your own rules.

rules :: IPFilter(
    1     src net 10.1.0.0/16,                                                            // Spoof: our own addresses, from outside
    allow dst host 10.1.0.1 and tcp dst port smtp and src port > 1023,                    // SMTP-1: incoming mail
    allow dst host 10.1.0.1 and tcp src port smtp and dst port > 1023 and tcp opt ack,    // SMTP-2: replies to outgoing mail
    allow dst host 10.1.0.1 and tcp dst port www and src port > 1023,                     // HTTP-1
    allow dst host 10.1.0.1 and tcp src port www and dst port > 1023 and tcp opt ack,     // HTTP-2
    allow dst host 10.1.0.1 and tcp dst port ftp and src port > 1023,                     // FTP-1: commands
    allow dst host 10.1.0.1 and tcp dst port ftp-data and src port > 1023 and tcp opt ack, // FTP-2: data, opened by the host
    allow src host 192.100.5.9 and dst host 10.1.0.2 and tcp dst port nntp and src port > 1023,                 // NNTP-1
    allow src host 192.100.5.9 and dst host 10.1.0.2 and tcp src port nntp and dst port > 1023 and tcp opt ack, // NNTP-2
    allow src net 192.168.7/24 and dst host 10.1.0.1 and tcp dst port telnet,             // Telnet-1: from one network only
    allow dst host 10.1.0.1 and tcp src port telnet and dst port > 1023 and tcp opt ack,  // Telnet-2
    allow dst host 10.1.0.1 and tcp dst port ssh,                                         // SSH-1
    allow dst host 10.1.0.1 and tcp src port ssh and tcp opt ack,                         // SSH-2
    allow dst host 10.1.0.1 and udp dst port dns and src port > 1023,                     // DNS-1: queries of clients
    allow dst host 10.1.0.1 and tcp src port dns and dst port dns,                        // DNS-4: zone transfers
    allow dst host 10.1.0.1 and udp src port dns and dst port dns,                        // DNS-5: between servers
    1     all);                                                                           // Default

// For each rule one packet that matches, and one that just misses.
FromIPSummaryDump(DATA "!data ip_src sport ip_dst dport ip_proto tcp_flags
10.1.255.255 2000 10.1.0.1 25 T S
10.2.0.0 1024 10.1.0.1 25 T S
20.1.1.7 1023 10.1.0.1 25 T S
20.1.1.7 25 10.1.0.1 1024 T A
20.1.1.7 25 10.1.0.1 1024 T S
20.1.1.7 2000 10.1.0.1 80 T S
20.1.1.7 2000 10.1.0.2 80 T S
20.1.1.7 80 10.1.0.1 65535 T PA
20.1.1.7 80 10.1.0.1 1023 T PA
20.1.1.7 2000 10.1.0.1 21 T S
20.1.1.7 2000 10.1.0.1 21 U -
20.1.1.7 2000 10.1.0.1 20 T SA
20.1.1.7 2000 10.1.0.1 20 T S
192.100.5.9 2000 10.1.0.2 119 T S
192.100.5.8 2000 10.1.0.2 119 T S
192.100.5.9 119 10.1.0.2 2000 T A
192.100.5.9 119 10.1.0.1 2000 T A
192.168.7.255 23 10.1.0.1 23 T S
192.168.8.0 23 10.1.0.1 23 T S
20.1.1.7 23 10.1.0.1 2000 T A
20.1.1.7 23 10.1.0.1 1000 T A
20.1.1.7 1 10.1.0.1 22 T S
20.1.1.7 1 10.1.0.3 22 T S
20.1.1.7 22 10.1.0.1 1 T A
20.1.1.7 22 10.1.0.1 1 T F
20.1.1.7 2000 10.1.0.1 53 U -
20.1.1.7 1000 10.1.0.1 53 U -
20.1.1.7 53 10.1.0.1 53 T S
20.1.1.7 53 10.1.0.1 54 T S
20.1.1.7 53 10.1.0.1 53 U -
20.1.1.7 53 10.1.0.0 53 U -
20.1.1.7 2000 10.1.0.1 6000 T S
20.1.1.7 - 10.1.0.1 - I -
", STOP true)
    -> sent :: Counter -> rules;
rules [0] -> passed :: Counter -> Discard;
rules [1] -> blocked :: Counter -> Discard;
