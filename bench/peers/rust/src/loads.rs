//! The workloads: each returns its result as a line of JSON.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rslock::LockManager;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::board::Board;
use crate::clock::{cpu_now, heap_bytes, now, resident_kb};
use crate::histogram::Histogram;

/// The library asks for a lease in each call and has no default.
pub const LEASE: Duration = Duration::from_secs(30);

/// Tasks share a thread, and the library does not report whether a release found its lock. So two holders are
/// noticed only if one of them stays for a while. One grant in this many does, which takes below 1 % of the time.
const STAY_EVERY: u64 = 4096;
const STAY: Duration = Duration::from_millis(1);

pub type Failure = Box<dyn Error + Send + Sync>;

/// When a workload began and when it is to end, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Span {
    from: i64,
    until: i64,
}

/// Starts all tasks together and returns the span. Call it when all of them are spawned.
fn start_all(start: &watch::Sender<Span>, length: Duration) -> Span {
    let from = now();
    let span = Span {
        from,
        until: from + length.as_nanos() as i64,
    };
    start.send_replace(span);
    span
}

async fn wait_for_start(mut start: watch::Receiver<Span>) -> Result<Span, Failure> {
    Ok(*start.wait_for(|span| span.until != 0).await?)
}

fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}

async fn use_own_lock(
    manager: LockManager,
    name: String,
    start: watch::Receiver<Span>,
) -> Result<(u64, Histogram), Failure> {
    let (mut pairs, mut latency) = (0, Histogram::new());
    let span = wait_for_start(start).await?;
    let mut before = now();
    while before < span.until {
        manager.acquire(name.as_str(), LEASE).await?.release().await;
        let after = now();
        latency.add(after - before);
        pairs += 1;
        before = after;
    }
    Ok((pairs, latency))
}

pub async fn own(
    manager: &LockManager,
    tasks: usize,
    length: Duration,
    name: &str,
) -> Result<String, Failure> {
    let (start, started) = watch::channel(Span::default());
    let task = |i| use_own_lock(manager.clone(), format!("{name}:{i}"), started.clone());
    let mut running: JoinSet<_> = (0..tasks).map(task).collect();
    let span = start_all(&start, length);
    let (mut pairs, mut latency) = (0, Histogram::new());
    while let Some(task) = running.join_next().await {
        let (done, measured) = task??;
        pairs += done;
        latency.merge(&measured);
    }
    Ok(format!(
        r#"{{"pairs": {pairs}, "seconds": {:.6}, "p50": {}, "p99": {}, "p999": {}}}"#,
        seconds(now() - span.from),
        latency.quantile(0.5),
        latency.quantile(0.99),
        latency.quantile(0.999)
    ))
}

pub async fn warm(manager: &LockManager, length: Duration, name: &str) -> Result<String, Failure> {
    own(manager, 1, length / 2, name).await?;
    own(manager, 8, length / 2, name).await?;
    Ok("{}".to_string())
}

/// What the tasks that compete for one lock have counted.
struct Grants {
    total: u64,
    changes: u64,
    gap: Histogram,
    wait: Histogram,
}

impl Grants {
    fn new() -> Self {
        Grants {
            total: 0,
            changes: 0,
            gap: Histogram::new(),
            wait: Histogram::new(),
        }
    }

    /// Counts a grant if it arrived in time. A wait that is not over at the end counts until then.
    fn note(&mut self, span: Span, asked_at: i64, granted_at: i64, me: i64, last: (i64, i64)) {
        self.wait.add(granted_at.min(span.until) - asked_at);
        if granted_at >= span.until {
            return;
        }
        self.total += 1;
        let (holder, released_at) = last;
        if holder != me && released_at >= span.from {
            self.changes += 1;
            self.gap.add(granted_at - released_at);
        }
    }

    fn merge(&mut self, other: &Grants) {
        self.total += other.total;
        self.changes += other.changes;
        self.gap.merge(&other.gap);
        self.wait.merge(&other.wait);
    }
}

/// One of the tasks that compete for one lock.
struct Rival {
    manager: LockManager,
    name: String,
    board: &'static Board,
    me: i64,
}

impl Rival {
    async fn compete(self, start: watch::Receiver<Span>) -> Result<Grants, Failure> {
        let mut grants = Grants::new();
        let span = wait_for_start(start).await?;
        let mut asked_at = now();
        while asked_at < span.until {
            let lock = self.manager.acquire(self.name.as_str(), LEASE).await?;
            let granted_at = now();
            grants.note(
                span,
                asked_at,
                granted_at,
                self.me,
                self.board.enter(self.me),
            );
            if grants.total.is_multiple_of(STAY_EVERY) {
                sleep(STAY).await;
            }
            if !self.board.is_mine(self.me) {
                return Err("two holders".into());
            }
            self.board.leave(now());
            lock.release().await;
            asked_at = now();
        }
        Ok(grants)
    }
}

pub async fn hand(
    manager: &LockManager,
    board: &'static Board,
    tasks: usize,
    length: Duration,
    name: &str,
) -> Result<String, Failure> {
    let (start, started) = watch::channel(Span::default());
    let rival = |i| Rival {
        manager: manager.clone(),
        name: name.to_string(),
        board,
        me: std::process::id() as i64 * 1000 + i as i64,
    };
    let task = |i| rival(i).compete(started.clone());
    let mut running: JoinSet<_> = (0..tasks).map(task).collect();
    let span = start_all(&start, length);
    let mut all = Grants::new();
    while let Some(task) = running.join_next().await {
        all.merge(&task??);
    }
    Ok(format!(
        r#"{{"grants": {}, "changes": {}, "seconds": {:.6}, "gap_p50": {}, "gap_p99": {}, "wait_p50": {}, "wait_max": {}}}"#,
        all.total,
        all.changes,
        seconds(span.until - span.from),
        all.gap.quantile(0.5),
        all.gap.quantile(0.99),
        all.wait.quantile(0.5),
        all.wait.maximum()
    ))
}

/// Takes a lock that the library renews until `release` is notified. The task ends early if the lock is lost.
async fn take_renewed(
    manager: &LockManager,
    name: String,
    release: &Arc<Notify>,
) -> Result<JoinHandle<bool>, Failure> {
    let (taken, is_taken) = oneshot::channel();
    let (manager, release) = (manager.clone(), release.clone());
    let task = tokio::spawn(async move {
        let keep = async || {
            let released = release.notified();
            let _ = taken.send(());
            released.await;
        };
        manager.using(name.as_bytes(), LEASE, keep).await.is_ok()
    });
    is_taken.await?;
    Ok(task)
}

pub async fn held(
    manager: &LockManager,
    count: usize,
    length: Duration,
    name: &str,
) -> Result<String, Failure> {
    let release = Arc::new(Notify::new());
    let mut tasks = Vec::with_capacity(count);
    let (heap_before, from) = (heap_bytes(), now());
    for i in 0..count {
        tasks.push(take_renewed(manager, format!("{name}:{i}"), &release).await?);
    }
    let taken_at = now();
    let heap = heap_bytes().saturating_sub(heap_before);

    println!(r#"{{"keeping": true}}"#);
    std::io::stdout().flush()?;
    let cpu_before = cpu_now();
    sleep(length).await;
    let (cpu, kept) = (cpu_now() - cpu_before, now() - taken_at);
    let rss_kb = resident_kb();

    let lost = tasks.iter().filter(|task| task.is_finished()).count();
    release.notify_waiters();
    for task in tasks {
        task.await?;
    }
    Ok(format!(
        r#"{{"held": {count}, "lost": {lost}, "seconds": {:.6}, "cpu": {:.6}, "bytes_per_lock": {}, "take_seconds": {:.6}, "rss_kb": {rss_kb}, "renewed_by": "library"}}"#,
        seconds(kept),
        seconds(cpu),
        heap / count.max(1),
        seconds(taken_at - from)
    ))
}
