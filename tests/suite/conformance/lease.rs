//! The right to purge, while a pass goes on. [B36]
//!
//! A pass measures by Tokio's clock when to renew it, so the test lets it jump.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use idem_runtime::{Pass, Purger, Stopped};
use idem_tests::{Db, TestStore};
use tokio::sync::Semaphore;

use super::purge::{DAY, ago, kept, keys};

/// The longest pause between two batches.
const PAUSE: Duration = Duration::from_secs(10);

/// As long a pass goes by the lease that it has, by the code.
const TRUSTED: Duration = Duration::from_secs(15);

/// Lets the clock of this runtime jump, which no wait for the database may notice: it stands still for the jump alone.
pub(crate) async fn jump(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A pass in batches of ten with ten seconds between them, until it ends or has made so many. Something happens after
/// the first one.
async fn pass<S: TestStore>(db: Arc<Db<S>>, happens: String, batches: u32) -> Option<Pass> {
    let engine = db.engine(1).await;
    let batch = Arc::new(Semaphore::new(0));
    let told = Arc::clone(&batch);
    let purger = Purger::new(&engine).batch_size(10).pause(PAUSE).after_batch(move |_, keys| {
        // No pause follows an empty one.
        told.add_permits(usize::from(keys > 0));
    });
    let mut pass = pin!(purger.pass());
    for number in 1..=batches {
        tokio::select! {
            pass = &mut pass => return Some(pass.unwrap()),
            permit = batch.acquire() => permit.unwrap().forget(),
        }
        if number == 1 {
            db.run(&happens).await;
        }
        if number < batches {
            jump(PAUSE).await;
        }
    }
    None
}

/// Only a runtime of one thread has a clock that jumps.
async fn on_one_thread<F: Future>(test: impl FnOnce() -> F + Send + 'static) -> F::Output
where
    F::Output: Send + 'static,
{
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test());
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// A node that was away for so long that another one took over: it notices when it would renew, leaves the keys to the
/// other one, and the lease as it is.
pub(super) async fn a_pass_ends_soon_after_another_node_took_its_lease<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 1_000, 8 * DAY).await;
    let taken = format!("UPDATE idem_lease SET holder = 'another node', until_at = {}", ago::<S>(-600));
    let of_test = Arc::clone(&db);
    let pass = on_one_thread(move || pass(of_test, taken, 10)).await.expect("it ends by itself");
    assert_eq!((&pass.stopped, pass.failures.len()), (&Some(Stopped::Elsewhere), 0));
    let batches = u32::try_from(pass.purged() / 10).unwrap();
    assert!((batches - 1) * PAUSE < TRUSTED, "{batches} batches");
    assert_eq!(kept(&db, "perform").await, 1_000 - i64::try_from(pass.purged()).unwrap());
    let lease = format!(
        "SELECT count(*) FROM idem_lease WHERE holder = 'another node' AND until_at > {} AND last_pass_at IS NULL",
        ago::<S>(-500)
    );
    assert_eq!(db.number(&lease).await, 1);
}

/// One that ends in twenty seconds does not end between a batch at ten seconds and one at twenty.
pub(super) async fn a_pass_renews_its_lease_while_it_runs<S: TestStore>(db: Arc<Db<S>>) {
    keys(&db, "perform", 1_000, 8 * DAY).await;
    let soon = format!("UPDATE idem_lease SET until_at = {}", ago::<S>(-20));
    let of_test = Arc::clone(&db);
    assert!(on_one_thread(move || pass(of_test, soon, 3)).await.is_none());
    assert_eq!(db.number(&format!("SELECT count(*) FROM idem_lease WHERE until_at > {}", ago::<S>(-40))).await, 1);
    assert_eq!(kept(&db, "perform").await, 970);
}
