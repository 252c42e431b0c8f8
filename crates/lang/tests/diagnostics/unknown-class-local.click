elementclass MyClass { Idle }
a :: MyClas;
