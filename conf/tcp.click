// SPDX-License-Identifier: MIT OR Apache-2.0
// Two hosts with a TCP of their own, and a bad line between them: one packet in fifty is lost, others come late or twice.
//
//     castanet run -q --simtime conf/tcp.click -h sink.received -h sink.wrong -h client.opened -h client.finished
//
// prints
//
//     sink.received:
//     1000000
//
//     sink.wrong:
//     0
//
//     client.opened:
//     1
//
//     client.finished:
//     1
//
// The TCP is written in Prolac (protocols/tcp). With simulated time the result is the same each time, and immediate.

elementclass Line {
    input -> RandomSample(0.98) -> twice :: Tee -> late :: RandomSample(0.95) -> output;
    late [1] -> Queue -> DelayUnqueue(30ms) -> output;
    twice [1] -> RandomSample(0.02) -> output;
}

client :: TCPStack(10.0.0.1) -> Line -> server :: TCPStack(10.0.0.2) -> Line -> client;

sink :: TCPSink(server, PORT 5001);
TCPSource(client, CONNECT 10.0.0.2:5001, LIMIT 1000000);

DriverManager(wait 200s, stop);
