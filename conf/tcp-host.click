// SPDX-License-Identifier: MIT OR Apache-2.0
// A host at user level: the kernel reaches it through a TUN device. It has an address and a TCP of its own, answers pings, and
// serves the ports of echo, discard and character generator; its port 80 is that of a program of this machine.
//
//     castanet run conf/tcp-host.click
//     python3 -m http.server --bind 127.0.0.1 8080 & curl http://10.77.0.2/
//     nc 10.77.0.2 7

define($KERNEL 10.77.0.1/24, $HOST 10.77.0.2, $SERVER 127.0.0.1:8080);

tun :: KernelTun($KERNEL) -> CheckIPHeader -> IPReassembler -> ping :: ICMPPingResponder -> tun;
ping [1] -> tcp :: TCPStack($HOST) -> tun;

TCPEcho(tcp, PORT 7);
TCPDiscard(tcp, PORT 9);
TCPSource(tcp, PORT 19);
TCPRelay(tcp, PORT 80, TO $SERVER);
