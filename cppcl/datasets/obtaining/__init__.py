"""How the files of a data set come here: downloads, archives, folders added by hand."""
