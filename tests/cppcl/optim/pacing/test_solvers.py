"""What every solver of the pacing step has in common; their oracles are beside the other ones."""

import ctypes
import warnings

import numpy as np
import osqp
import pytest

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import ConvergenceWarning, InputError
from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing import programs as pacing_programs
from cppcl.optim.pacing.coupling import GraphCoupling
from cppcl.optim.pacing.problem import CurriculumTerm, PacingProblem
from cppcl.optim.pacing.step import PACING_SOLVERS, update_pacing

K, L = 20, 30
PROGRAMS = sorted(set(PACING_SOLVERS) - {"fista"})


def problem(dtype=np.float64, *, n_atoms=5, factor=1.0, with_pairs=True):
    rng = np.random.default_rng(4)
    graph = Laplacian.from_labels(np.arange(K) % 3, np.arange(L) % 3, dtype=dtype)
    terms = []
    for rows in (slice(0, K), slice(K, K + L)) if with_pairs else ():
        n = rows.stop - rows.start
        pairs = np.array([rng.permutation(n)[:2] for _ in range(40)])
        terms.append(CurriculumTerm(rows, ExplicitPairs(pairs, n), 0.1 * factor))
    return PacingProblem(
        losses=(rng.random(K + L) * factor).astype(dtype),
        regularizer="B",
        gamma=0.8 * factor,
        coupling=GraphCoupling(graph, rng.standard_normal((K + L, n_atoms)).astype(dtype)),
        beta=0.3 * factor,
        curricula=terms,
    )


@pytest.mark.parametrize("solver", PACING_SOLVERS)
@pytest.mark.parametrize("n_atoms", [1, 40])
def test_the_matrix_given_to_solvers_is_the_objective(solver, n_atoms):
    # 1 atom: the graph is applied through the codes, and listed only for the programs.
    paced = problem(n_atoms=n_atoms)
    v = np.random.default_rng(0).random(K + L)
    pairs, weights = paced.listed_pairs
    hinge = weights @ np.maximum(v[pairs[:, 0]] - v[pairs[:, 1]], 0)
    assert v @ paced.matrix() @ v - paced.linear @ v + hinge == pytest.approx(paced.value(v))
    result = update_pacing(paced, start=np.ones(K + L), solver=solver, tol=1e-8)
    assert result.kkt < 1e-4
    assert result.converged
    assert result.n_iter > 0


@pytest.mark.parametrize("solver", PACING_SOLVERS)
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_solvers_do_not_depend_on_the_objective_s_scale(solver, factor):
    start = np.full(K + L, 0.5)
    one = update_pacing(problem(), start=start, solver=solver, tol=1e-8)
    other = update_pacing(problem(factor=factor), start=start, solver=solver, tol=1e-8)
    np.testing.assert_allclose(other.v, one.v, atol=1e-5)
    assert other.kkt < 1e-4
    assert one.v.std() > 0.05


@pytest.mark.parametrize("solver", PACING_SOLVERS)
def test_solvers_keep_float32_and_the_box_and_repeat_their_bytes(solver):
    start = np.ones(K + L, np.float32)
    results = [update_pacing(problem(np.float32), start=start, solver=solver) for _ in range(2)]
    assert results[0].v.dtype == np.float32
    assert results[0].v.tobytes() == results[1].v.tobytes()
    assert 0 <= results[0].v.min() < results[0].v.max() <= 1


@pytest.mark.parametrize("solver", PACING_SOLVERS)
def test_solvers_take_the_graph_alone(solver):
    paced = problem(with_pairs=False)
    result = update_pacing(paced, start=np.ones(K + L), solver=solver, tol=1e-9)
    # v = 1 and v = 0 do not bind here, so that the solution is that of a linear system.
    expected = np.linalg.solve(2 * paced.matrix().toarray(), paced.linear)
    assert 0 < expected.min() < expected.max() < 1
    np.testing.assert_allclose(result.v, expected, atol=1e-5)


@pytest.mark.parametrize("solver", PROGRAMS)
def test_programs_refuse_what_they_would_take_minutes_for(solver, monkeypatch):
    monkeypatch.setattr(pacing_programs, "LARGEST", K + L - 1)
    with pytest.raises(InputError, match="at most 49 samples, not 50; use qp_solver='fista'"):
        update_pacing(problem(), start=np.ones(K + L), solver=solver)


@pytest.mark.parametrize("solver", PROGRAMS)
def test_programs_need_listed_pairs(solver):
    class Unlisted:
        pass

    paced = PacingProblem(
        np.ones(3), "B", 1.0, curricula=[CurriculumTerm(slice(0, 3), Unlisted(), 1.0)]
    )
    with pytest.raises(InputError, match="Unlisted does not list its pairs"):
        update_pacing(paced, start=np.ones(3), solver=solver)


def test_an_unknown_solver_is_named():
    with pytest.raises(InputError, match="qp_solver='simplex' is not one of"):
        update_pacing(problem(), start=np.ones(K + L), solver="simplex")


def test_a_solver_that_gives_up_warns_and_never_worsens_the_start(monkeypatch):
    setup = osqp.OSQP.setup
    monkeypatch.setattr(
        osqp.OSQP, "setup", lambda self, *a, **k: setup(self, *a, **(k | {"max_iter": 1}))
    )
    paced = problem()
    start = update_pacing(paced, start=np.ones(K + L)).v
    with pytest.warns(ConvergenceWarning, match="use qp_solver='fista'"):
        result = update_pacing(paced, start=start, solver="osqp")
    assert not result.converged
    assert result.objective <= paced.value(start)


def test_what_a_solver_says_does_not_reach_standard_output(monkeypatch, capfd):
    setup = osqp.OSQP.setup

    def talks(self, *arguments, **options):
        ctypes.CDLL(None).puts(b"ERROR in validate_data")
        return setup(self, *arguments, **options)

    monkeypatch.setattr(osqp.OSQP, "setup", talks)
    update_pacing(problem(), start=np.ones(K + L), solver="osqp")
    said = capfd.readouterr()
    assert said.out == ""
    assert "ERROR in validate_data" in said.err


def test_a_solver_that_refuses_a_problem_leaves_the_start(monkeypatch):
    def refuses(self, *arguments, **options):
        raise osqp.OSQPException(4)

    monkeypatch.setattr(osqp.OSQP, "setup", refuses)
    paced = problem()
    with pytest.warns(ConvergenceWarning, match="use qp_solver='fista'"):
        result = update_pacing(paced, start=np.ones(K + L), solver="osqp")
    assert result.objective <= paced.value(np.ones(K + L))


def test_a_solver_that_returns_nothing_leaves_the_start():
    start = np.full(3, 0.5)
    with pytest.warns(ConvergenceWarning, match="'infeasible'"):
        solution = pacing_programs._finish(None, None, 1.0, start, 7, False, "infeasible")
    assert solution.v is start
    assert solution.multipliers is None
    assert not solution.converged
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        nothing = np.full(3, np.nan), np.zeros(1)
        assert pacing_programs._finish(*nothing, 1.0, start, 7, False, "failed").v is start
