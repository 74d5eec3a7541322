"""Feature-sign search for one lasso, slow and plain (Lee, Battle, Raina and Ng 2006)."""

import numpy as np


def feature_sign(f, D, alpha):
    """Minimise ``|f - c D|^2 + alpha |c|_1`` over c (N,), for f (m,) and atoms D (N, m)."""
    G, q = D @ D.T, D @ f
    N = len(D)
    c, signs, active = np.zeros(N), np.zeros(N), np.zeros(N, dtype=bool)

    def value(c):
        return (f - c @ D) @ (f - c @ D) + alpha * np.abs(c).sum()

    for _ in range(100 * N):
        gradient = 2 * (G @ c - q)
        idle = (c == 0) & (np.abs(gradient) > alpha * (1 + 1e-10))
        if not idle.any():
            return c
        k = int(np.argmax(np.where(idle, np.abs(gradient), 0)))
        signs[k], active[k] = -np.sign(gradient[k]), True
        for _ in range(100 * N):
            A = np.flatnonzero(active)
            solution = np.linalg.solve(G[np.ix_(A, A)], q[A] - alpha / 2 * signs[A])
            # Candidates: the solution, and every point on the way where a code becomes zero.
            step = solution - c[A]
            with np.errstate(divide="ignore", invalid="ignore"):
                crossings = -c[A] / step
            lengths = [1.0, *crossings[(crossings > 0) & (crossings < 1)]]
            candidates = []
            for length in lengths:
                candidate = c.copy()
                candidate[A] += length * step
                candidate[A[np.isclose(crossings, length, rtol=0, atol=1e-14)]] = 0
                candidates.append(candidate)
            c = min(candidates, key=value)
            active[c == 0] = False
            signs = np.sign(c)
            A = np.flatnonzero(active)
            residual = 2 * (G[A] @ c - q[A]) + alpha * signs[A]
            if np.abs(residual).max(initial=0.0) <= 1e-9:
                break
    raise AssertionError("feature-sign search did not end")
