"""The gate of a release, which runs only the steps that the certificate pays for.

No other code reads private weights or draws noise. A mechanism proposes steps. Before any noise is drawn, the gate
compares each step with the certificate in exact arithmetic, and rejects steps that the certificate does not cover.
Therefore no schedule, forecast, menu or constant can affect the guarantee. The transcript of the gate is a function of
the certificate and of private outputs only (docs/design/0031-gate.md).
"""
