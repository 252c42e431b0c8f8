{ $a | Idle };
