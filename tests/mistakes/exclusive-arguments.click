FromDump(conf/traces/ip-router-eth0.pcap, START 1, START_AFTER 2) -> Discard;
