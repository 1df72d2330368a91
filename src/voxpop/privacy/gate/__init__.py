"""The gate of a release: it alone reads private weights and draws noise, and runs only what the certificate pays for.

A mechanism proposes steps; the gate compares each with the certificate before any noise is drawn, exactly, and refuses
the others. So no schedule, forecast, menu or constant can affect the guarantee. Its transcript is a function of the
certificate and of private outputs only (docs/design/0031-gate.md).
"""
