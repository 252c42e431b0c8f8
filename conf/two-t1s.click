// SPDX-License-Identifier: MIT OR Apache-2.0
// Two T1 lines to a backbone, two priorities, fairness among flows, RED over all queues, after TOCS 2000, Figure 12 and section 4.3
// ("The Click Modular Router").
//
//     castanet run -q --simtime conf/two-t1s.click
//
// prints
//
//     low/a :: Queue: overflow
//     low/b :: Queue: overflow
//     high/b :: Queue: overflow
//     high/a :: Queue: overflow
//     low floods: lines 11580 11580
//     low floods: high 2833 2803 low 8762 8762
//     low floods: no room high 0 low 21961
//     low floods: RED saw 48000 dropped 2879 average 127.513881667
//     all flood: lines 11580 11580
//     all flood: high 11580 11580 low 0 0
//     all flood: no room high 12551 low 35671
//     all flood: RED saw 84000 dropped 12618 average 254.742563333
//
// Two equal lines pull from the same scheduler, which balances the load between them. It serves high priority before low
// priority; each is a virtual queue that serves its flows in rotation (Figure 10). RED stands before all queues and finds the four of them
// by flow-based router context: the more packets wait in them together, the more are dropped, of every flow. In the first part, two flows
// of high priority send less than the lines carry, and two of low priority more than the rest. In the second part, high priority
// floods the lines too. docs/two-t1s.md explains the numbers.

define($T1 1544kbps, $ROOM 64, $MIN 50, $MAX 300, $P 0.1);

// 500 bytes a packet: a line carries 386 a second.
elementclass Flow { $host, $rate |
    source :: RatedSource(LENGTH 472, RATE $rate) -> UDPIPEncap($host, 5000, 10.0.9.1, 80) -> output;
}

elementclass FairQueue {
    input -> flow :: HashSwitch(12, 12);
    flow [0] -> a :: Queue($ROOM) -> [0] turns :: RoundRobinSched;
    flow [1] -> b :: Queue($ROOM) -> [1] turns;
    a [1] -> over :: Counter -> Discard;
    b [1] -> over;
    turns -> output;
}

h1 :: Flow(10.0.1.1, 100) -> all :: Counter;
h2 :: Flow(10.0.1.2, 100) -> all;
l1 :: Flow(10.0.2.1, 900) -> all;
l2 :: Flow(10.0.2.2, 500) -> all;

all -> red :: RED($MIN, $MAX, $P) -> priority :: IPClassifier(src net 10.0.1.0/24, -);
priority [0] -> high :: FairQueue -> [0] first :: PrioSched;
priority [1] -> low :: FairQueue -> [1] first;

first -> LinkUnqueue(5ms, $T1) -> line1 :: Counter -> sorted :: IPClassifier(src host 10.0.1.1, src host 10.0.1.2, src host 10.0.2.1, -);
first -> LinkUnqueue(5ms, $T1) -> line2 :: Counter -> sorted;

sorted [0] -> c1 :: Counter -> sink :: Discard;
sorted [1] -> c2 :: Counter -> sink;
sorted [2] -> c3 :: Counter -> sink;
sorted [3] -> c4 :: Counter -> sink;

clear :: Script(TYPE PASSIVE,
    write all.reset, write line1.reset, write line2.reset, write high/over.reset, write low/over.reset,
    write c1.reset, write c2.reset, write c3.reset, write c4.reset);

// In each part the queues have two seconds to fill up; then the length that RED sees is read twenty times a second.
DriverManager(
    set part low floods:,
    label part,
    wait 2s, write clear.run, set drops $(red.drops), set n 0, set sum 0,
    label look,
    wait 0.05s, set n $(add $n 1), set sum $(add $sum $(red.avg_queue_size)), goto look $(lt $n 600),
    print "$part lines $(line1.count) $(line2.count)",
    print "$part high $(c1.count) $(c2.count) low $(c3.count) $(c4.count)",
    print "$part no room high $(high/over.count) low $(low/over.count)",
    print "$part RED saw $(all.count) dropped $(sub $(red.drops) $drops) average $(div $sum $n)",
    goto end $(eq $(h1/source.rate) 900),
    write h1/source.rate 900, write h2/source.rate 500,
    set part all flood:,
    goto part,
    label end,
    stop);
