Idle -> (-> Null -> ; 
