// SPDX-License-Identifier: MIT OR Apache-2.0
// Schedulers composed of schedulers, after TOCS 2000, Figure 9 ("The Click Modular Router", section 4.1).
//
//     castanet run -q --simtime conf/schedulers.click
//
// prints
//
//     gold_queue :: Queue: overflow
//     bronze_queue :: Queue: overflow
//     silver_queue :: Queue: overflow
//     interactive_queue :: Queue: overflow
//     all send:        control 280 interactive 360 gold 180 silver 120 bronze 60
//     gold is silent:  control 280 interactive 360 gold 0 silver 240 bronze 120
//     all send again:  control 280 interactive 360 gold 180 silver 120 bronze 60
//
// A link of 100 packets a second serves five classes of traffic. Control traffic, 28 packets a second, has strict priority. The
// remaining 72 packets a second are served in rotation to interactive traffic (36) and to three customers, who share their half by
// tickets, 3 to 2 to 1 (18, 12 and 6). All classes except control send more than their share, so the shares are exact. In the second part
// the customer gold sends nothing: silver and bronze share its part, 2 to 1 (24 and 12), and the other classes are not affected. In
// the third part gold returns and gets its share again, but no compensation.

elementclass Source { $kind, $rate | RatedSource(DATA $kind, RATE $rate) -> output; }

control :: Source("C", 28) -> control_queue :: Queue(100) -> [0] link :: PrioSched;
interactive :: Source("I", 200) -> interactive_queue :: Queue(100) -> [0] turns :: RoundRobinSched;
gold :: Source("G", 200) -> gold_queue :: Queue(10) -> [0] shares :: StrideSched(3, 2, 1);
silver :: Source("S", 200) -> silver_queue :: Queue(100) -> [1] shares;
bronze :: Source("B", 200) -> bronze_queue :: Queue(100) -> [2] shares;

shares -> [1] turns -> [1] link;

link -> RatedUnqueue(100) -> kind :: Classifier(0/43, 0/49, 0/47, 0/53, 0/42);
kind [0] -> c :: Counter -> sink :: Discard;
kind [1] -> i :: Counter -> sink;
kind [2] -> g :: Counter -> sink;
kind [3] -> s :: Counter -> sink;
kind [4] -> b :: Counter -> sink;

clear :: Script(TYPE PASSIVE, write c.reset, write i.reset, write g.reset, write s.reset, write b.reset);
counts :: Script(TYPE PASSIVE,
    return control $(c.count) interactive $(i.count) gold $(g.count) silver $(s.count) bronze $(b.count));

// The queues have a second to fill up, or to run empty, before packets are counted.
DriverManager(
    wait 1s, write clear.run, wait 10s, print "all send:        $(counts.run)",
    write gold/RatedSource@1.active false,
    wait 1s, write clear.run, wait 10s, print "gold is silent:  $(counts.run)",
    write gold/RatedSource@1.active true,
    wait 1s, write clear.run, wait 10s, print "all send again:  $(counts.run)",
    stop);
