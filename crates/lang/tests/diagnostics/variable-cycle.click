define($a $b, $b $a);
Print($a);
