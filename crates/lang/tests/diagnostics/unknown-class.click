a :: FooBar;
