InfiniteSource(LIMIT 5, STOP true) -> Discard;
DriverManager(wait_stop, stop);
Script(TYPE DRIVER, stop);
