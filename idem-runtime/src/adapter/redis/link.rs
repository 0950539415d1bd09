//! Connecting, and what is checked then.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, ServerErrorKind, Value, cmd};

use super::super::AdapterError;
use super::{BLOCK, Place, RELEASED, scripts};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(3);

/// How long an answer may take, and one with as many bodies as the consumer has room for.
const ANSWER: Duration = Duration::from_secs(5);
const BODIES: Duration = Duration::from_secs(30);

/// An id that no entry has, so that a command with it shows that it is permitted, and does nothing.
const NOWHERE: &str = "18446744073709551615-0";

/// The connections to one server. The one that reads waits for entries, and nothing else may wait behind it.
#[derive(Clone)]
pub(super) struct Links {
    pub(super) reads: MultiplexedConnection,
    pub(super) commands: MultiplexedConnection,
}

impl Links {
    pub(super) async fn open(url: &str) -> Result<Self, AdapterError> {
        let client = Client::open(url).map_err(|error| {
            let form = "redis://[user:password@]host[:port][/database]";
            AdapterError::refused(format!("the URL is none of Redis; it has the form `{form}`"))
                .because(error.to_string())
        })?;
        let open = async |answer: Duration| {
            let config =
                AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT)).set_response_timeout(Some(answer));
            client.get_multiplexed_async_connection_with_config(&config).await.map_err(|error| failed(&error))
        };
        Ok(Self { commands: open(ANSWER).await?, reads: open(BLOCK + BODIES).await? })
    }

    /// Sends one command, and leaves its answer.
    async fn send(&self, command: &Cmd) -> Result<(), RedisError> {
        command.query_async::<Value>(&mut self.commands.clone()).await.map(drop)
    }

    /// Refuses what would lose events, or what would fail only when a delivery is to be settled. Says whether the server keeps
    /// a file of what it has taken, as far as we may ask.
    pub(super) async fn check(&self, place: &Place, create: bool) -> Result<bool, AdapterError> {
        let is_durable = self.check_server().await?;
        for key in [&place.stream, &place.dead_letters] {
            self.check_stays(key).await?;
        }
        if create {
            let mut make = cmd("XGROUP");
            make.arg("CREATE").arg(&place.stream).arg(&place.group).arg("0").arg("MKSTREAM");
            if let Err(error) = self.send(&make).await
                && error.code() != Some("BUSYGROUP")
            {
                return Err(failed(&error));
            }
        }
        self.check_place(place).await.map_err(|error| match is_missing(&error) {
            true => AdapterError::refused(format!(
                "the stream or its group is not there; make it with `XGROUP CREATE {} {} 0 MKSTREAM`, or let \
                 `RedisStream::create_group` do it",
                place.stream, place.group,
            ))
            .because(error.to_string()),
            false => failed(&error),
        })?;
        Ok(is_durable)
    }

    async fn check_server(&self) -> Result<bool, AdapterError> {
        let info: String = match cmd("INFO").query_async(&mut self.commands.clone()).await {
            Ok(info) => info,
            Err(error) if is_forbidden(&error) => return Ok(true),
            Err(error) => return Err(failed(&error)),
        };
        let says = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default().trim()
        };
        let mut version = says("redis_version").split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (version.next().unwrap_or(0), version.next().unwrap_or(0));
        if ((1, 0)..(6, 2)).contains(&version) {
            let found = says("redis_version");
            return Err(AdapterError::refused(format!(
                "Redis 6.2 or newer is needed, for XAUTOCLAIM; this is {found}"
            )));
        }
        let policy = says("maxmemory_policy");
        if policy.starts_with("allkeys") {
            return Err(AdapterError::refused(format!(
                "`maxmemory-policy {policy}` lets Redis delete the stream when memory is short, with every event in it; set \
                 `noeviction` or a `volatile-` policy"
            )));
        }
        if says("role") == "slave" {
            return Err(AdapterError::refused(
                "this Redis is a replica, and takes no acknowledgement; name the primary",
            ));
        }
        Ok(says("aof_enabled") != "0")
    }

    /// A key that expires takes its events along.
    async fn check_stays(&self, key: &str) -> Result<(), AdapterError> {
        match cmd("PTTL").arg(key).query_async::<i64>(&mut self.commands.clone()).await {
            Ok(0..) => Err(AdapterError::refused(format!(
                "the stream `{key}` has a time to live: it is deleted at its end, with every event in it; run `PERSIST {key}`"
            ))),
            Err(error) if !is_forbidden(&error) => Err(failed(&error)),
            _ => Ok(()),
        }
    }

    /// Calls everything that is called later, in a way that changes nothing.
    async fn check_place(&self, place: &Place) -> Result<(), RedisError> {
        let Place { stream, group, consumer, dead_letters, .. } = place;
        self.send(cmd("XINFO").arg("CONSUMERS").arg(stream).arg(group)).await?;
        let mut commands = self.commands.clone();
        let _: (u64, u64, String, u64, u64) = scripts::LAG.key(stream).arg(group).invoke_async(&mut commands).await?;
        let in_group = |name: &str| {
            let mut command = cmd(name);
            command.arg(stream).arg(group);
            command
        };
        self.send(in_group("XACK").arg(NOWHERE)).await?;
        self.send(in_group("XPENDING").arg(NOWHERE).arg(NOWHERE).arg(1)).await?;
        self.send(in_group("XCLAIM").arg(RELEASED).arg(0).arg(NOWHERE).arg("JUSTID")).await?;
        self.send(in_group("XAUTOCLAIM").arg(consumer).arg(0).arg(NOWHERE).arg("COUNT").arg(1).arg("JUSTID")).await?;
        let mut read = cmd("XREADGROUP");
        self.send(read.arg("GROUP").arg(group).arg(consumer).arg("STREAMS").arg(stream).arg(NOWHERE)).await?;
        self.send(cmd("XRANGE").arg(stream).arg(NOWHERE).arg(NOWHERE)).await?;
        self.send(cmd("XLEN").arg(dead_letters)).await?;
        // Both keys in one script: in a cluster they must be in one slot.
        let mut bury = scripts::BURY.key(stream);
        bury.key(dead_letters).arg(group).arg(consumer).arg(NOWHERE).arg(0).arg("");
        let _: i64 = bury.invoke_async(&mut commands).await?;
        match self.send(cmd("XADD").arg(dead_letters).arg("0-0").arg("").arg("")).await {
            // Redis looks at the permission first, and at the id, which is none, before it writes.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError) => Ok(()),
            done => done,
        }
    }
}

/// A code of Redis's, also where a script hands it on.
fn says(error: &RedisError, code: &str) -> bool {
    error.code() == Some(code) || error.detail().is_some_and(|detail| detail.contains(code))
}

/// Not permitted, or not offered, as managed servers do.
fn is_forbidden(error: &RedisError) -> bool {
    ["NOPERM", "can't run this command", "can't access", "ACL failure", "unknown command"]
        .iter()
        .any(|code| says(error, code))
}

fn is_missing(error: &RedisError) -> bool {
    says(error, "NOGROUP") || says(error, "no such key")
}

/// What an error of the client means for the consumer.
pub(super) fn failed(error: &RedisError) -> AdapterError {
    let any = |codes: &[&str]| codes.iter().any(|code| says(error, code));
    let refused = match error.kind() {
        ErrorKind::AuthenticationFailed => Some("Redis refuses the user or the password in the URL"),
        ErrorKind::InvalidClientConfig => {
            Some("the client cannot connect as the URL says; `rediss:` needs the feature `redis-tls`")
        }
        _ if any(&["NOAUTH", "WRONGPASS"]) => Some("Redis refuses the user or the password in the URL"),
        _ if is_missing(error) => Some("the stream or its group is not there any more"),
        _ if any(&["WRONGTYPE"]) => {
            Some("the key of the stream, or of the dead letters, holds something else than a stream")
        }
        _ if any(&["MOVED", "CROSSSLOT"]) => Some(
            "this is a node of a cluster: the stream and its dead letters must be in one slot, as `{name}` and `{name}:dead`, \
             and the URL must name the node that holds it",
        ),
        _ if any(&["OOM "]) || error.code() == Some("OOM") => {
            Some("Redis has no memory left for it; raise `maxmemory`")
        }
        _ if is_forbidden(error) => Some(
            "the user may not do this in Redis, or Redis is older than 6.2; see the ACL in the documentation of `RedisStream`",
        ),
        _ => None,
    };
    let failed = match refused {
        Some(text) => AdapterError::refused(text),
        None => AdapterError::unreachable("Redis does not answer, or did not do as it was asked"),
    };
    // The client's error would be told twice: it is its own source.
    failed.because(error.to_string())
}
