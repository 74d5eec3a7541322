"""The learner: CPRL, the preparation of features, graphs, links of new samples."""
