// SPDX-License-Identifier: MIT OR Apache-2.0
// A link of 100 packets a second is shared by 60 packets a second of voice and 200 of bulk data, once with strict priority for
// voice, once in rotation.
//
//     castanet run -q --simtime conf/scheduling.click -h priority/voice.count -h priority/bulk.count -h turns/voice.count -h turns/bulk.count
//
// prints
//
//     first_bulk :: Queue: overflow
//     equal_bulk :: Queue: overflow
//     equal_voice :: Queue: overflow
//     priority/voice.count:
//     601
//
//     priority/bulk.count:
//     400
//
//     turns/voice.count:
//     501
//
//     turns/bulk.count:
//     500
//
// In ten seconds, voice loses nothing with strict priority, and bulk gets the rest of the link. Round robin gives each half. Queues
// print a message when they begin to drop packets; the summary (without -q) has the number of drops.

elementclass Source { $kind, $rate | RatedSource(DATA $kind, RATE $rate) -> output; }

elementclass Link {
    input -> RatedUnqueue(RATE 100) -> kind :: Classifier(0/56, -);
    kind [0] -> voice :: Counter -> Discard;
    kind [1] -> bulk :: Counter -> Discard;
}

voice :: Source("V", 60) -> to_voice :: Tee;
bulk :: Source("B", 200) -> to_bulk :: Tee;

first_voice :: Queue(50) -> [0] first :: PrioSched;
first_bulk :: Queue(50) -> [1] first;
first -> priority :: Link;

equal_voice :: Queue(50) -> [0] equal :: RoundRobinSched;
equal_bulk :: Queue(50) -> [1] equal;
equal -> turns :: Link;

to_voice [0] -> first_voice; to_voice [1] -> equal_voice;
to_bulk [0] -> first_bulk; to_bulk [1] -> equal_bulk;

DriverManager(wait 10s, stop);
