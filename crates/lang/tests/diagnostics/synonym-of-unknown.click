elementclass A Qeue;
a :: A;
