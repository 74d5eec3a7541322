"""One stage a file: ask the store, compute with the library, publish, return a reference."""
