"""Trust: signals, calibrated probabilities, conformal sets, certified risk; numpy only."""
