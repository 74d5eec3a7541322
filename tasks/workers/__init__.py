"""Functions that run on Dask workers. They import the library and storage only."""
