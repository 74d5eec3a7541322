"""What is printed in the paper and cannot be so, by number; reports refer to them."""

from __future__ import annotations

ERRATA: dict[int, str] = {
    1: "Regulariser B is printed with the wrong sign: every pacing variable becomes 0 and no "
    "sample is selected. Ours is +gamma (v^2 / 2 - v).",
    2: "The printed pairwise term of the pacing step is indefinite and misses a factor of two; "
    "ours is the quadratic form of the trace in the code step.",
    3: "The pacing program is called convex, which it is neither with binary variables nor with "
    "the printed pairwise term.",
    4: "The quadratic form is printed without the one half that its solver expects.",
    5: "Order constraints are printed as strict inequalities, which no program can hold.",
    6: "Sizes of the printed constraint vectors do not match: 2(K + L) + C against 2(K + L + C).",
    7: "gamma = mu = 0 selects nothing; the ablation must mean V = I, every sample fully.",
    8: "Relaxed, regulariser A weighs softly too, so that soft against hard weighting cannot be "
    "why B is ahead of A; B itself never reaches v = 1.",
    9: "Regulariser A divides by the raw size of a group: sketches and images are paced at "
    "different speeds. Ours takes sizes relative to their mean in the modality.",
    10: "alpha |C|_1 is not weighed by V: samples with small v lose their codes and look hardest. "
    "Ours weighs it by v^2.",
    11: "A Gaussian affinity with sigma = 1 on features of unit norm is nearly a complete graph "
    "and drowns the links of classes. Ours links the modalities only, unless told otherwise.",
    12: "alpha = 2 or 6 leaves no code on features of unit norm, while sigma = 1 needs such "
    "features: both cannot hold. Empty codes rank by chance.",
    13: "The recursion printed as FISTA is ISTA, and its gradient holds the L1 norm.",
    14: "The dual dictionary step fails with fewer samples than atoms.",
    15: "Numbers of training images (4,883, 4,833) are not 40 % of 14,660, and features of 2,400 "
    "values are not those of fc6, which has 4,096.",
    16: "gamma is said to start at 1 for all sets and, for Flickr15K, at 0.5.",
    17: "The lead of 9.93 points leaves out Siamese CNN, 0.1954 in the same table: it is 7.80.",
    18: "B with gamma = 0 is said to be ahead of the other versions, and is not in the table.",
    19: "The image with the lowest objectness is called the easiest; high scores are easy.",
    20: "Objective values with and without pacing are of different functions. Ours are shown each "
    "on its own, and on a common one with every sample counting fully.",
    21: "Symbols are used twice: K for sketches and neighbours, D for dictionaries and degrees.",
    22: "mu is printed for CUFS alone.",
    23: "Numbers of curriculum pairs that the constraint ratio implies do not fit the printed run "
    "times; which pairs were admitted is not said.",
}
