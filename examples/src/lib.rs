//! Holds the examples; see `README.md` for the list.
