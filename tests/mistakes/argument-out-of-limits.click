Idle -> AggregatePaint(9) -> Discard;
