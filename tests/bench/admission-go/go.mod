module bench.local/admission

go 1.26.0
