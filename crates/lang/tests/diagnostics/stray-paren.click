a :: Idle )
