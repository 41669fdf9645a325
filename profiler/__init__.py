"""stallscope: is my GPU waiting for data, why, what should I change, how much faster will it get, and was that true?

    scenario.yaml --scenario--> Scenario --registry--> Source, Loader, Model
                                                           |
                                                       execute.py
                                                           v
                           Watch: the trainer's spans + the device's   Probe: what each batch cost where it was made
                                                           v
                     Run         what was measured, in one directory; never changed again        <- the waist
    -------------------------------------------------------+------------------- below: pure, no clock, no framework
                                                           v
                   timeline -> measure -> Result -> rules -> Diagnosis -> reports/<format>.render

Measuring code computes nothing; computing code has no clock, file or framework; rendering code decides nothing.
"""
