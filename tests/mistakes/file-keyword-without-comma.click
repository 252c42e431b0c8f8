FromDump(trace.pcap STOP true) -> Discard;
