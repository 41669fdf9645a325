"""What is read in the background while a loop runs, one subject a file. `profiler/sampler.py` has the one thread for all."""
