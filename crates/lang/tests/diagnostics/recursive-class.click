elementclass A { Idle -> a :: A }
