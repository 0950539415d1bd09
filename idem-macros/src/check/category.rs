//! Names that give a key away as one that does not identify the event. A lint and no proof: it can be overridden with a
//! reason, and a helper function can hide from it.

use syn::Expr;

use super::allow::Allowances;
use super::key::{List, Place};
use super::words::{Kind, Word, Words, hands_on, is_in, snake};
use crate::diag::Errors;

/// Every refusal that `allow(…)` overrides.
pub(super) const CATEGORIES: [&str; 6] =
    ["attempt_scoped", "content_hash", "broker_position", "whole_message", "defaulted", "too_many_parts"];

const ATTEMPT: &str = "delivery_tag delivery_id redelivered is_redelivered redelivery_count delivery_count \
    delivery_attempt delivery_attempts times_delivered num_delivered attempt attempts attempt_no attempt_number \
    attempt_count attempt_id retry retries retry_count retry_number retry_attempt try_count receipt_handle ack_id \
    ack_token lock_token consumer_tag dequeue_count receive_count approximate_receive_count death received_at \
    processed_at consumed_at delivered_at trace_id span_id trace_parent traceparent amzn_trace_id request_id";

/// Steps of the path of a function that makes something new. A method of such a name is mostly a getter, but for the
/// second list.
const GENERATORS: &str = "new_v1 new_v4 new_v6 new_v7 now_v1 now_v6 now_v7 uuid4 now now_utc now_local today random rand rng \
    thread_rng random_range random_bool fastrand nanoid ulid cuid generate";
const GENERATING_METHODS: &str = "now now_utc now_local elapsed gen gen_range random_range random_bool generate fetch_add \
    fetch_sub";

const CONTENT: &str = "hash digest checksum fingerprint md5 sha1 sha2 sha256 sha512 sha3 blake2 blake3 crc32 crc32c xxhash \
    xxh3 siphash finalize finish body_hash content_hash payload_hash etag body raw_body payload raw raw_json content \
    to_vec to_json";

/// What in the name of a function says that it digests or writes down what it is given.
const DIGESTS: &str = "hash digest checksum md5 sha1 sha2 sha256 sha512 sha3 blake2 blake3 crc32 xxhash xxh3 serialize";
const WRITERS: &str = "serde_json bincode postcard rmp_serde ciborium";

const POSITION: &str = "offset kafka_offset queue_offset log_offset partition partition_id stream_sequence stream_seq \
    consumer_sequence stream_position log_position lsn";

const MESSAGE: &str = "msg message event payload body raw record delivery envelope bytes data";

const DEFAULTS: &str = "unwrap_or unwrap_or_default unwrap_or_else map_or map_or_else unwrap expect or or_else";

/// Whether a part was refused. Each rule speaks once of a part.
pub(super) fn refuse(part: &Expr, at: Place<'_>, allowances: &Allowances<'_>, errors: &Errors) -> bool {
    let words = Words::of(part);
    let before = errors.count();
    refuse_generated(&words, at, errors);
    refuse_attempt_scoped(&words, at, allowances, errors);
    if at.list == List::OccurredAt {
        return errors.count() > before;
    }
    refuse_broker_position(&words, at, allowances, errors);
    if at.list == List::Key {
        if !refuse_whole_message(part, allowances, errors) {
            refuse_content_hash(&words, at, allowances, errors);
        }
        refuse_defaulted(&words, at, allowances, errors);
    }
    errors.count() > before
}

/// A value that is made here is another one for each delivery. No reason can make that an identifier.
fn refuse_generated(words: &Words, at: Place<'_>, errors: &Errors) {
    let function = words.find_in(GENERATORS, |word| word.kind == Kind::Function);
    if let Some(word) = function.or_else(|| words.find_in(GENERATING_METHODS, |word| word.kind == Kind::Method)) {
        errors.refuse(
            word.at,
            format_args!("`{}` makes a new value for each delivery{at}", word.written),
            instead(at.list),
            match at.list {
                List::Key => "what is new each time never meets itself again: no redelivery would be recognised",
                List::Fingerprint => {
                    "every redelivery would differ from the first delivery, and be parked as a mismatch"
                }
                List::OccurredAt => "an event that is dated anew with each delivery never gets too old",
            },
        );
    }
}

/// The attempt to deliver is another one each time.
fn refuse_attempt_scoped(words: &Words, at: Place<'_>, allowances: &Allowances<'_>, errors: &Errors) {
    if let Some(word) = words.find_in(ATTEMPT, |_| true).filter(|_| !allowances.allow("attempt_scoped")) {
        let why = match at.list {
            List::Key => "the next delivery of the event has another one: its key is new, and the effect happens twice",
            List::Fingerprint => "the next delivery of the event has another one, and would be parked as a mismatch",
            List::OccurredAt => "the next delivery of the event has another one, so that no event ever gets too old",
        };
        errors.refuse(
            word.at,
            format_args!("`{}` belongs to the attempt to deliver, not to the event{at}", word.written),
            format_args!("{}; if the producer set it, `allow(attempt_scoped, reason = \"…\")`", instead(at.list)),
            why,
        );
    }
}

/// A producer that sends again, and a dead letter that is replayed, get another place in the log.
fn refuse_broker_position(words: &Words, at: Place<'_>, allowances: &Allowances<'_>, errors: &Errors) {
    if let Some(word) = words.find_in(POSITION, |_| true).filter(|_| !allowances.allow("broker_position")) {
        errors.refuse(
            word.at,
            format_args!("`{}` is a place in the broker's log, not the event{at}", word.written),
            format_args!("{}; if it is none, `allow(broker_position, reason = \"…\")`", instead(at.list)),
            "a producer that sends again, or a dead letter that is replayed, puts the event in another place",
        );
    }
}

/// Every field would take part, and so would the one that changes between two deliveries.
fn refuse_whole_message(part: &Expr, allowances: &Allowances<'_>, errors: &Errors) -> bool {
    let Some(name) = whole(part).filter(|name| is_in(&snake(&name.to_string()), MESSAGE)) else {
        return false;
    };
    if !allowances.allow("whole_message") {
        errors.refuse(
            name.span(),
            "the key is the whole message",
            format_args!(
                "name the fields that identify the event: `key({name}.order_id)`; if `{name}` is an identifier itself, \
                 name it so, or `allow(whole_message, reason = \"…\")`"
            ),
            "any field that differs in a redelivery doubles the effect, and two events with equal fields are taken for one",
        );
    }
    true
}

/// Two events can have equal contents, and one event's contents can be written in two ways.
fn refuse_content_hash(words: &Words, at: Place<'_>, allowances: &Allowances<'_>, errors: &Errors) {
    // What a function or a method is given need not be what it returns, unless it digests that.
    let digests = |word: &Word| match word.kind {
        Kind::Name => false,
        Kind::Method => is_in(&word.text, DIGESTS),
        Kind::Function => is_in(&word.text, WRITERS) || word.text.split('_').any(|piece| is_in(piece, DIGESTS)),
    };
    let word = words.find_in(CONTENT, |word| word.is_value).or_else(|| words.first(digests));
    if let Some(word) = word.filter(|_| !allowances.allow("content_hash")) {
        errors.refuse(
            word.at,
            format_args!("`{}` makes the key out of the content{at}", word.written),
            format_args!(
                "{}, and compare contents with `fingerprint(…)`; if it is the event's identifier, \
                 `allow(content_hash, reason = \"…\")`",
                instead(at.list)
            ),
            "two events can have equal contents (the same customer pays the same sum again), and the second would be dropped",
        );
    }
}

/// All events without a value would be one event, or none of them would get past its key.
fn refuse_defaulted(words: &Words, at: Place<'_>, allowances: &Allowances<'_>, errors: &Errors) {
    if let Some(word) = words.find_in(DEFAULTS, |word| word.kind == Kind::Method)
        && !allowances.allow("defaulted")
    {
        let panics = is_in(&word.text, "unwrap expect");
        let does =
            if panics { "panics on an event without this value" } else { "gives all events without a value one key" };
        errors.refuse(
            word.at,
            format_args!("`{}` {does}{at}", word.written),
            "make the field required in the message type; or `allow(defaulted, reason = \"…\")`",
            if panics {
                "a message that can never be applied is redelivered for ever, where a malformed one is dead-lettered"
            } else {
                "the first of them is applied, and all others are dropped as its duplicates"
            },
        );
    }
}

fn instead(list: List) -> &'static str {
    match list {
        List::Key => "name what the producer gave the event: `key(msg.order_id)`",
        List::Fingerprint => "name what every delivery of the event has alike: `fingerprint(msg.cents)`",
        List::OccurredAt => "name the time that the producer gave the event: `occurred_at = msg.created_at`",
    }
}

/// The parameter that a part hands on as a whole.
fn whole(part: &Expr) -> Option<&proc_macro2::Ident> {
    match part {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Reference(inner) => whole(&inner.expr),
        Expr::Unary(inner) => whole(&inner.expr),
        Expr::Paren(inner) => whole(&inner.expr),
        Expr::Group(inner) => whole(&inner.expr),
        Expr::MethodCall(call) if hands_on(call) => whole(&call.receiver),
        _ => None,
    }
}
