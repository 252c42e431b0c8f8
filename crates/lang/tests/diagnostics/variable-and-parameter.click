elementclass C { $a | define($a 2) Print($a) }
C(1);
