//! librdkafka's settings: ours, the caller's, and those that are refused.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;

use super::super::AdapterError;

const EARLY: &str = "would acknowledge records whose effect is not committed; leave it out";

const DEAD_LETTERS: &str = "is set by the adapter: a dead letter must be stored before its original is acknowledged";

/// What a caller does not choose, if it has this value (`*`: any), and why.
const REFUSED: [(&str, &str, &str); 12] = [
    ("enable.auto.commit", "true", EARLY),
    ("auto.commit.enable", "true", EARLY),
    ("enable.auto.offset.store", "true", EARLY),
    ("auto.offset.reset", "latest", SKIPS),
    ("auto.offset.reset", "largest", SKIPS),
    ("auto.offset.reset", "end", SKIPS),
    ("acks", "*", DEAD_LETTERS),
    ("request.required.acks", "*", DEAD_LETTERS),
    ("enable.idempotence", "*", DEAD_LETTERS),
    ("allow.auto.create.topics", "true", "would make an empty topic of a name that is mistyped; create the topic"),
    ("bootstrap.servers", "*", "is the first argument of `Kafka::new`"),
    ("group.id", "*", "is the second argument of `Kafka::new`"),
];

const SKIPS: &str = "would skip what was sent before the first commit, and whatever an offset that is gone stood for; say \
                     `Kafka::from_latest` if that is meant";

/// What both the consumer and the producer of dead letters take.
const SHARED: [&str; 14] = [
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl.",
    "enable.sasl.",
    "https.",
    "socket.",
    "broker.",
    "client.",
    "metadata.",
    "topic.metadata.",
    "reconnect.",
    "retry.backoff.",
    "message.max.bytes",
];

/// librdkafka's own default.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(300);

pub(super) fn check(settings: &BTreeMap<String, String>) -> Result<(), AdapterError> {
    for (key, value) in settings {
        let value = match value.trim().to_ascii_lowercase().as_str() {
            "t" | "1" => "true".to_owned(),
            other => other.to_owned(),
        };
        let found = REFUSED.iter().find(|(name, refused, _)| name == key && (*refused == "*" || *refused == value));
        if let Some((name, refused, why)) = found {
            let setting = if *refused == "*" { format!("`{name}`") } else { format!("`{name}={value}`") };
            return Err(AdapterError::refused(format!("{setting} {why}")));
        }
    }
    Ok(())
}

pub(super) fn consumer(
    servers: &str,
    group: &str,
    settings: &BTreeMap<String, String>,
    is_from_latest: bool,
) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", servers)
        .set("auto.offset.reset", if is_from_latest { "latest" } else { "earliest" })
        // A commit that hangs must not hold a rebalance up for a minute.
        .set("socket.timeout.ms", "10000")
        // What is fetched ahead is dropped at a pause, so little of it.
        .set("queued.min.messages", "1000")
        .set("queued.max.messages.kbytes", "16384");
    if settings.get("group.protocol").is_none_or(|protocol| protocol == "classic") {
        // Members that keep a partition go on during a rebalance.
        config.set("partition.assignment.strategy", "cooperative-sticky");
    }
    config.extend(settings.clone());
    config
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("allow.auto.create.topics", "false");
    config
}

/// For dead letters: each is stored on all replicas, and once.
pub(super) fn producer(servers: &str, settings: &BTreeMap<String, String>) -> ClientConfig {
    let mut config = ClientConfig::new();
    // A record is as large as its topic allows, which the broker knows.
    config.set("bootstrap.servers", servers).set("message.max.bytes", "104857600");
    let shared = settings.iter().filter(|(key, _)| SHARED.iter().any(|shared| key.starts_with(shared)));
    config.extend(shared.map(|(key, value)| (key.clone(), value.clone())));
    config
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("message.timeout.ms", "30000")
        .set("linger.ms", "0");
    config
}

pub(super) fn max_poll_interval(settings: &BTreeMap<String, String>) -> Duration {
    let millis = settings.get("max.poll.interval.ms").and_then(|millis| millis.parse().ok());
    millis.map_or(MAX_POLL_INTERVAL, Duration::from_millis)
}

/// A client that cannot be made. librdkafka's text can quote a value, which may be a password.
pub(super) fn not_made(error: KafkaError) -> AdapterError {
    match error {
        KafkaError::ClientConfig(_, _, key, _) => {
            AdapterError::refused(format!("librdkafka does not take the setting `{key}`, or not its value"))
        }
        error => AdapterError::refused("librdkafka does not take the settings").because(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(key: &str, value: &str) -> Option<String> {
        check(&BTreeMap::from([(key.to_owned(), value.to_owned())])).err().map(|error| error.to_string())
    }

    #[test]
    fn what_acknowledges_early_or_skips_is_refused_in_any_spelling() {
        for value in ["true", "TRUE", "t", "1", " true "] {
            for key in ["enable.auto.commit", "auto.commit.enable", "enable.auto.offset.store"] {
                assert!(refusal(key, value).unwrap().contains("whose effect is not committed"));
            }
            assert!(refusal("allow.auto.create.topics", value).unwrap().contains("mistyped"));
        }
        assert!(refusal("auto.offset.reset", "Latest").unwrap().contains("`Kafka::from_latest`"));
        assert!(refusal("acks", "1").unwrap().contains("dead letter"));
        for (key, value) in
            [("enable.auto.commit", "false"), ("auto.offset.reset", "earliest"), ("session.timeout.ms", "6000")]
        {
            assert_eq!(refusal(key, value), None);
        }
    }

    #[test]
    fn the_defaults_can_be_changed_and_what_must_hold_cannot() {
        let settings = [("partition.assignment.strategy", "range"), ("sasl.password", "x"), ("fetch.wait.max.ms", "9")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let config = consumer("broker", "group", &settings, false);
        for (key, value) in [
            ("partition.assignment.strategy", "range"),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "earliest"),
        ] {
            assert_eq!(config.get(key), Some(value), "{key}");
        }
        let config = producer("broker", &settings);
        assert_eq!((config.get("sasl.password"), config.get("fetch.wait.max.ms")), (Some("x"), None));
        assert_eq!((config.get("acks"), config.get("enable.idempotence")), (Some("all"), Some("true")));
    }

    #[test]
    fn a_value_that_is_no_good_is_not_repeated() {
        let settings = BTreeMap::from([("session.timeout.ms".to_owned(), "hunter2".to_owned())]);
        let native = consumer("broker", "group", &settings, false).create_native_config();
        let text = not_made(native.err().unwrap()).with_causes();
        assert!(text.contains("`session.timeout.ms`") && !text.contains("hunter2"), "{text}");
    }
}
