elementclass Foo;
a :: Idle;
