//! Benchmark peer: rslock on the usual runtime of tokio, all tasks over its one multiplexed connection.

mod board;
mod clock;
mod histogram;
mod loads;

use std::io::{BufRead, Read, Write, stdin, stdout};
use std::time::Duration;

use rslock::LockManager;
use tokio::runtime::{Builder, Runtime};

use board::Board;
use loads::{Failure, LEASE};

const USAGE: &str = "usage: rslock-peer [--processes N] (URL BOARD | --start URL NAME)";

struct Arguments {
    start: bool,
    url: String,
    /// The lock's name with --start, else the path of the board.
    subject: String,
}

fn parse_arguments() -> Option<Arguments> {
    let mut start = false;
    let mut rest = Vec::new();
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--start" => start = true,
            // The board is shared between processes, so their number does not matter here.
            "--processes" => drop(given.next()?),
            _ => rest.push(argument),
        }
    }
    let [url, subject] = <[String; 2]>::try_from(rest).ok()?;
    Some(Arguments {
        start,
        url,
        subject,
    })
}

/// The version of the library that this program was built with.
fn library_version() -> &'static str {
    let after = include_str!("../Cargo.lock")
        .split("name = \"rslock\"\nversion = \"")
        .nth(1);
    after
        .and_then(|text| text.split('"').next())
        .unwrap_or("unknown")
}

fn say(line: &str) -> Result<(), Failure> {
    println!("{line}");
    Ok(stdout().flush()?)
}

/// Takes one lock as soon as possible, then waits for a byte of input.
fn start_only(runtime: &Runtime, manager: &LockManager, name: &str) -> Result<(), Failure> {
    let _lock = runtime.block_on(manager.acquire(name, LEASE))?;
    say("held")?;
    let _ = stdin().read(&mut [0]);
    // SAFETY: ends the process without cleaning up, as asked.
    unsafe { libc::_exit(0) }
}

async fn answer(
    manager: &LockManager,
    board: &'static Board,
    line: &str,
) -> Result<String, Failure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let length = |text: &str| text.parse().map(Duration::from_secs_f64);
    match words[..] {
        ["warm", seconds, name] => loads::warm(manager, length(seconds)?, name).await,
        ["own", tasks, seconds, name] => {
            loads::own(manager, tasks.parse()?, length(seconds)?, name).await
        }
        ["hand", tasks, seconds, name] => {
            loads::hand(manager, board, tasks.parse()?, length(seconds)?, name).await
        }
        ["held", count, seconds, name] => {
            loads::held(manager, count.parse()?, length(seconds)?, name).await
        }
        ["async", ..] => Ok(
            r#"{"unsupported": "own is asynchronous already: tasks on one thread"}"#.to_string(),
        ),
        ["fair", ..] => Ok(r#"{"unsupported": "no fair lock"}"#.to_string()),
        ["rw", ..] => Ok(r#"{"unsupported": "no read-write lock"}"#.to_string()),
        _ => Err(format!("unknown command: {line}").into()),
    }
}

/// The library connects with the first lock, and this is the only way to learn that it could not.
fn connect(runtime: &Runtime, manager: &LockManager) -> Result<(), Failure> {
    let name = format!("ready:{}", std::process::id());
    let lock = runtime.block_on(manager.lock(name.as_str(), LEASE))?;
    runtime.block_on(lock.release());
    Ok(())
}

fn serve(runtime: &Runtime, manager: &LockManager, board: &str) -> Result<(), Failure> {
    let board = Board::open(board)?;
    connect(runtime, manager)?;
    say(&format!(
        r#"{{"ready": true, "peer": "rslock", "version": "{}"}}"#,
        library_version()
    ))?;
    for line in stdin().lock().lines() {
        let line = line?;
        if line.trim() == "quit" {
            break;
        }
        say(&runtime.block_on(answer(manager, board, &line))?)?;
    }
    Ok(())
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let manager = LockManager::new(vec![arguments.url.as_str()]);
    match arguments.start {
        true => start_only(&runtime, &manager, &arguments.subject),
        false => serve(&runtime, &manager, &arguments.subject),
    }
}

fn main() {
    let Some(arguments) = parse_arguments() else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    if let Err(failure) = run(&arguments) {
        let text = failure.to_string().replace(['"', '\\', '\n'], " ");
        let _ = say(&format!(r#"{{"error": "{text}"}}"#));
        std::process::exit(1);
    }
}
