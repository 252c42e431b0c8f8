a :: Idle;
}
b :: Idle;
