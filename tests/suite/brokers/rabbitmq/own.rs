//! What only RabbitMQ does.
