"""One file a verb. `main` is the verb, its docstring is the help; heavy imports wait until it is called."""
