"""The stages of the chain, in order, and what each makes."""

DESCRIPTIONS = {
    "fetch": ("sample table: id, sha256, label, group a picture", "the data set"),
    "split": ("training and test rows", "fetch"),
    "learn": ("what extractors learn, where they do, from training pictures", "split"),
    "extract": ("features, and scores, of every picture", "fetch, learn"),
    "curricula": ("pairs (harder, easier) of training samples", "split, extract"),
    "tune": ("options chosen on the training rows, where there is a grid", "split, extract"),
    "train": ("a trained method: dictionaries, projections", "split, extract, curricula, tune"),
    "encode": ("codes of every picture", "train, extract"),
    "evaluate": ("scores of the test rows", "encode, split"),
    "report": ("report.html, scores.csv, figures", "all of them"),
}
STAGES = tuple(DESCRIPTIONS)
