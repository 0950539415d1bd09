//! What only a terminal sees: `script` of util-linux is one.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{Db, PROGRAM};

/// Runs the program on a terminal, on which something is typed, and gives what was seen. `None` without `script`.
fn on_terminal(db: &Db, args: &str, typed: &str, no_color: bool) -> Option<(i32, String)> {
    let line = format!("'{}' --db '{}' {args}", PROGRAM.display(), db.url());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove("NO_COLOR");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    let Ok(mut child) = command.env("TERM", "xterm").env("USER", "olga").spawn() else {
        #[allow(clippy::print_stderr, reason = "what is left out is never left out in silence")]
        {
            eprintln!("SKIPPED: there is no `script` to make a terminal with");
        }
        return None;
    };
    child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Some((output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap()))
}

#[test]
fn a_terminal_has_colours_unless_somebody_wants_none() {
    let db = Db::migrated();
    let Some((code, seen)) = on_terminal(&db, "doctor", "", false) else { return };
    assert_eq!(code, 1);
    assert!(seen.contains("\x1b[") && seen.contains("warning"), "{seen}");
    let (_, plain) = on_terminal(&db, "doctor", "", true).unwrap();
    assert!(!plain.contains("\x1b[") && plain.contains("warning (redelivery)"), "{plain}");
    let (_, json) = on_terminal(&db, "doctor --json", "", false).unwrap();
    assert!(!json.contains('\x1b'), "{json}");
}

#[tokio::test]
async fn a_purge_has_a_bar() {
    let db = Db::migrated();
    for number in 0..3 {
        db.key("credit-account", &format!("1/i:{number}"), 40 * 86_400).await;
    }
    let Some((code, seen)) = on_terminal(&db, "purge", "", false) else { return };
    assert_eq!(code, 0);
    assert!(seen.contains("/3 keys") && seen.contains("3 keys went"), "{seen}");
}

#[tokio::test]
async fn a_human_is_asked_before_a_key_is_forgotten() {
    let db = Db::migrated();
    db.key("credit-account", "1/i:7", 0).await;
    let forget = "forget i:7 --handler credit-account --reason undone";
    let Some((code, seen)) = on_terminal(&db, forget, "n\n", false) else { return };
    assert_eq!((code, db.number("SELECT count(*) FROM idem_key").await), (4, 1), "{seen}");
    assert!(seen.contains("applied AGAIN") && seen.contains("the key is kept"), "{seen}");
    let (code, seen) = on_terminal(&db, forget, "y\n", false).unwrap();
    assert_eq!((code, db.number("SELECT count(*) FROM idem_key").await), (0, 0), "{seen}");
}
