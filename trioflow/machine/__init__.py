"""The machine: the rules of BPMN as a pure function of state, event and time."""
