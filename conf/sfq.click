// SPDX-License-Identifier: MIT OR Apache-2.0
// Stochastic fair queueing as a virtual queue, after TOCS 2000, Figure 10 ("The Click Modular Router", section 4.1).
//
//     castanet run -q --simtime conf/sfq.click
//
// prints
//
//     FairQueue@10/Queue@5 :: Queue: overflow
//     Queue@8 :: Queue: overflow
//     FairQueue@10/Queue@9 :: Queue: overflow
//     FairQueue@10/Queue@7 :: Queue: overflow
//     FairQueue@10/Queue@8 :: Queue: overflow
//     FairQueue@10/Queue@6 :: Queue: overflow
//     plain: greedy 5700 others 0 0 0 0 small 0
//     fair:  greedy 1080 others 1080 1080 1080 1080 small 300
//
// A link of 95 packets a second is offered six flows: a greedy one of 2000 packets a second, four of 40, and one of 5. A plain queue
// is always full of packets of the greedy flow, and the others get nothing. The virtual queue hashes addresses and ports to eight
// queues, which are served in rotation. Here each flow has its own queue: the small flow loses nothing, and the other five get 18 packets
// a second each. The virtual queue has the ports of a Queue, one push input and one pull output, so it can replace any Queue. Its total
// capacity is that of the plain queue.

elementclass FairQueue {
    input -> flow :: HashSwitch(12, 12);
    flow [0] -> Queue(25) -> [0] turns :: RoundRobinSched;
    flow [1] -> Queue(25) -> [1] turns;
    flow [2] -> Queue(25) -> [2] turns;
    flow [3] -> Queue(25) -> [3] turns;
    flow [4] -> Queue(25) -> [4] turns;
    flow [5] -> Queue(25) -> [5] turns;
    flow [6] -> Queue(25) -> [6] turns;
    flow [7] -> Queue(25) -> [7] turns;
    turns -> output;
}

elementclass Flow { $host, $rate |
    RatedSource(LENGTH 60, RATE $rate) -> UDPIPEncap($host, 5000, 10.0.1.1, 80) -> output;
}

elementclass Link {
    input -> RatedUnqueue(95)
        -> from :: IPClassifier(src host 10.0.0.1, src host 10.0.0.2, src host 10.0.0.3, src host 10.0.0.4, src host 10.0.0.5, src host 10.0.0.6);
    from [0] -> greedy :: Counter -> sink :: Discard;
    from [1] -> a :: Counter -> sink;
    from [2] -> b :: Counter -> sink;
    from [3] -> c :: Counter -> sink;
    from [4] -> d :: Counter -> sink;
    from [5] -> small :: Counter -> sink;
    clear :: Script(TYPE PASSIVE, write greedy.reset, write a.reset, write b.reset, write c.reset, write d.reset, write small.reset);
    counts :: Script(TYPE PASSIVE,
        return greedy $(greedy.count) others $(a.count) $(b.count) $(c.count) $(d.count) small $(small.count));
}

traffic :: Tee;
Flow(10.0.0.1, 2000) -> traffic;
Flow(10.0.0.2, 40) -> traffic;
Flow(10.0.0.3, 40) -> traffic;
Flow(10.0.0.4, 40) -> traffic;
Flow(10.0.0.5, 40) -> traffic;
Flow(10.0.0.6, 5) -> traffic;

traffic [0] -> Queue(200) -> plain :: Link;
traffic [1] -> FairQueue -> fair :: Link;

// The queues fill up before packets are counted.
DriverManager(
    wait 10s, write plain/clear.run, write fair/clear.run,
    wait 60s, print "plain: $(plain/counts.run)", print "fair:  $(fair/counts.run)",
    stop);
