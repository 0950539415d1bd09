//! Kafka: the script, and what is Kafka's own.

mod cluster;

super::behaves!(script, super::cluster::Topics);
