-- oldest code: 2
-- A signal is one message with a delivery for each who waits for it: an older code would take it away with the first.

CREATE INDEX trioflow_deliveries_message ON trioflow_deliveries (message);
