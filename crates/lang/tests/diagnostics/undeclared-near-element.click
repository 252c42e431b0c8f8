my_queue :: Queue;
Idle -> my_qeue;
