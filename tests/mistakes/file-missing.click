// castanet run FILE
FromDump(/nonexistent/trace.pcap, STOP true) -> Discard;
