Idle -> queue1;
