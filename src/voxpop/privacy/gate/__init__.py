"""The gate of a release, which runs only steps that the certificate covers.

No other code reads private weights or draws noise. A mechanism proposes steps. Before any noise is drawn for a step,
the gate compares the step with the certificate in exact arithmetic. It rejects steps that the certificate does not
cover. Therefore no schedule, forecast, menu or constant can affect the guarantee. The transcript of the gate is a
function of the certificate and of private outputs only (docs/design/0017-gate.md).
"""
