"""The code step by accelerated proximal gradient, on the processor or a GPU alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cppcl.learning.graph import Laplacian
from cppcl.optim.accelerated import Step, descend_from
from cppcl.optim.code_problem import CodeProblem, CodeResult
from cppcl.optim.devices import on_device

if TYPE_CHECKING:
    from torch import Tensor


class DeviceLaplacian:
    """The graph's operator on a device.

    Parameters
    ----------
    laplacian : Laplacian
        The graph.
    device : str
        A torch device.
    """

    def __init__(self, laplacian: Laplacian, device: str) -> None:
        self.degree = on_device(laplacian.degree, device)[:, None]
        left, right = laplacian.left, laplacian.right
        self._factors = [_sparse(W, device) for W in (left, right)]
        self._transposes = [_sparse(W.T, device) for W in (left, right)]
        self._within = [
            None if W is None else _sparse(W, device) for W in laplacian.within_weights
        ]
        self._rows = (slice(0, left.shape[0]), slice(left.shape[0], None))

    def apply(self, X: Tensor) -> Tensor:
        """Return ``L @ X`` for stacked rows X (K + L, N)."""
        import torch

        product = self.degree * X
        for modality, rows in enumerate(self._rows):
            other = X[self._rows[1 - modality]]
            gathered = torch.sparse.mm(self._transposes[1 - modality], other)
            product[rows] -= torch.sparse.mm(self._factors[modality], gathered)
            if self._within[modality] is not None:
                product[rows] -= torch.sparse.mm(self._within[modality], X[rows])
        return product


def _sparse(matrix: Any, device: str) -> Tensor:
    import torch

    listed = matrix.tocoo()
    indices = torch.from_numpy(np.vstack([listed.row, listed.col]).astype(np.int64))
    values = torch.from_numpy(np.ascontiguousarray(listed.data))
    # The checks are off by default, and torch warns once of what is not said.
    silent: Any = torch.sparse.check_sparse_tensor_invariants
    with silent(enable=False):
        return torch.sparse_coo_tensor(indices, values, listed.shape).coalesce().to(device)


def update_codes_by_gradient(
    problem: CodeProblem, *, start: NDArray[Any], device: str, max_iter: int, tol: float
) -> CodeResult:
    """Lower the objective over all codes by FISTA, warm-started.

    One step length a sample, and gradient restart (O'Donoghue and Candes 2015). The objective
    never ends above its start: should momentum have raised it, plain proximal gradient steps,
    which cannot, are taken instead. See `cppcl.optim.codes.update_codes`.
    """
    import torch

    curvature = problem.curvature()
    weights = problem.sparsity.weights(problem.v)
    threshold = on_device((weights / curvature).astype(start.dtype), device)[:, None]
    steps = on_device((1 / curvature).astype(start.dtype), device)[:, None]
    metric = on_device(curvature.astype(start.dtype), device)[:, None]
    v = on_device(problem.v.astype(start.dtype), device)[:, None]
    graph = None if problem.graph is None else DeviceLaplacian(problem.graph, device)
    parts = []
    for block in problem.blocks:
        D = on_device(block.dictionary, device)
        parts.append((block.rows, D @ D.T, on_device(block.features, device) @ D.T))
    first = on_device(start, device)

    def gradient(Y: Tensor) -> Tensor:
        total = torch.empty_like(Y)
        for rows, gram, correlations in parts:
            torch.mm(Y[rows], gram, out=total[rows])
            total[rows] -= correlations
        total *= 2 * v * v
        if graph is not None:
            total += (2 * problem.beta) * v * graph.apply(v * Y)
        return total

    l1 = on_device(weights.astype(start.dtype), device)[:, None]

    def value(X: Tensor) -> float:
        # A quadratic form is half of x . gradient, less half of the linear part.
        total = (X * gradient(X)).sum(dtype=torch.float64) / 2
        for rows, _, correlations in parts:
            total -= (v[rows] ** 2 * X[rows] * correlations).sum(dtype=torch.float64)
        return float(total + (l1 * X.abs()).sum(dtype=torch.float64))

    changes: list[float] = []

    def step(Y: Tensor, X: Tensor) -> Step:
        Z = Y - gradient(Y) * steps
        X_new = Z - Z.clamp(-threshold, threshold)
        change = X_new - X
        ahead = float(((Y - X_new) * metric * change).sum())
        scale = float(torch.linalg.norm(X_new))
        changes.append(float(torch.linalg.norm(change)) / scale if scale else 0.0)
        return Step(X_new, ahead, changes[-1] <= tol, lambda share: X_new + share * change)

    run = descend_from(first, step, value, max_iter=max_iter)
    of_run = tuple(changes[len(changes) - run.n_iter :])
    return CodeResult(run.x.cpu().numpy(), run.n_iter, run.converged, of_run)
