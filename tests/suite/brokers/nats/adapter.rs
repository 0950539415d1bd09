//! What the adapter promises beside the script.
