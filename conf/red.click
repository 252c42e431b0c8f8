// SPDX-License-Identifier: MIT OR Apache-2.0
// Random early detection in four places, after TOCS 2000, Figures 5 and 11 and section 4.2 ("The Click Modular Router").
//
//     castanet run -q --simtime conf/red.click
//
// prints
//
//     one:      6002 of 36000 dropped, average 47.4022313333
//     several:  5996 of 36000 dropped, average 47.1484646667
//     weighted: 375 of 12000 dropped, average 41.2907373333
//               1654 of 12000 dropped, average 41.2907373333
//               3968 of 12000 dropped, average 41.2907373333
//     front:    6002 of 36000 dropped, average 47.6123126667
//
// Three flows of EACH packets a second, by default 40, are offered to four links of LINK packets a second. RED finds the relevant queues
// by flow-based router context, so one class makes four policies: RED before a queue; before several queues, whose
// lengths it adds; three RED elements with different arguments before one queue, so that flows have different drop probabilities;
// and behind a queue, where packets are dropped from the front. docs/red.md compares the average lengths with the formula of
// Floyd and Jacobson 1993 for this load.

define($EACH 40, $LINK 100, $SETTLE 60s, $LOOK 0.2s, $LOOKS 1500);

elementclass Stream { $n, $data | RatedSource(DATA $data, RATE $EACH) -> output; }
elementclass Link { $n | input -> RatedUnqueue($LINK) -> Discard; }

traffic :: Tee;
Stream(0, "a") -> a :: Counter -> traffic;
Stream(1, "b") -> b :: Counter -> traffic;
Stream(2, "c") -> c :: Counter -> traffic;

// RED over one queue.
traffic [0] -> one :: RED(20, 80, 0.2) -> Queue -> Link(0);

// RED over several queues.
traffic [1] -> several :: RED(20, 80, 0.2) -> flow :: HashSwitch(0, 1);
flow [0] -> Queue -> [0] turns :: RoundRobinSched;
flow [1] -> Queue -> [1] turns;
flow [2] -> Queue -> [2] turns;
turns -> Link(1);

// Weighted RED: flow a has the lowest drop probability, flow c the highest.
traffic [2] -> priority :: Classifier(0/61, 0/62, -);
priority [0] -> high :: RED(30, 100, 0.1) -> shared :: Queue;
priority [1] -> medium :: RED(20, 80, 0.2) -> shared;
priority [2] -> low :: RED(10, 60, 0.3) -> shared;
shared -> Link(2);

// RED behind the queue: drop from front.
traffic [3] -> FrontDropQueue -> front :: RED(20, 80, 0.2) -> Link(3);

// The averages have a minute to settle; then they are read five times a second for five minutes.
DriverManager(
    set looks $LOOKS, set n 0, set one 0, set several 0, set shared 0, set front 0,
    wait $SETTLE,
    write a.reset, write b.reset, write c.reset,
    set o $(one.drops), set s $(several.drops), set h $(high.drops), set m $(medium.drops), set l $(low.drops), set f $(front.drops),
    label look,
    wait $LOOK,
    set n $(add $n 1),
    set one $(add $one $(one.avg_queue_size)),
    set several $(add $several $(several.avg_queue_size)),
    set shared $(add $shared $(high.avg_queue_size)),
    set front $(add $front $(front.avg_queue_size)),
    goto look $(lt $n $looks),
    set all $(add $(a.count) $(b.count) $(c.count)), set average $(div $shared $n),
    print "one:      $(sub $(one.drops) $o) of $all dropped, average $(div $one $n)",
    print "several:  $(sub $(several.drops) $s) of $all dropped, average $(div $several $n)",
    print "weighted: $(sub $(high.drops) $h) of $(a.count) dropped, average $average",
    print "          $(sub $(medium.drops) $m) of $(b.count) dropped, average $average",
    print "          $(sub $(low.drops) $l) of $(c.count) dropped, average $average",
    print "front:    $(sub $(front.drops) $f) of $all dropped, average $(div $front $n)",
    stop);
