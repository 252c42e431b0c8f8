Script(TYPE ACTIV, stop);
