{ Idle -> input };
