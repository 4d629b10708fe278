//! The shared memory in which competing processes note who held the lock last.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

pub struct Board {
    holder: AtomicI64,
    released_at: AtomicI64,
}

impl Board {
    /// Maps the file for as long as the process lives.
    pub fn open(path: &str) -> io::Result<&'static Board> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() < size_of::<Board>() as u64 {
            return Err(io::Error::other("board is shorter than 16 bytes"));
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let descriptor = file.as_raw_fd();
        // SAFETY: a fresh shared mapping, at least as long as a Board and never unmapped.
        unsafe {
            let start = std::ptr::null_mut();
            let address = libc::mmap(
                start,
                size_of::<Board>(),
                protection,
                libc::MAP_SHARED,
                descriptor,
                0,
            );
            if address == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(&*(address as *const Board))
        }
    }

    /// Notes the new holder, and returns the last one with the time of its release.
    pub fn enter(&self, me: i64) -> (i64, i64) {
        let last = (self.holder.load(Relaxed), self.released_at.load(Relaxed));
        self.holder.store(me, Relaxed);
        last
    }

    /// Whether nobody else has entered since.
    pub fn is_mine(&self, me: i64) -> bool {
        self.holder.load(Relaxed) == me
    }

    pub fn leave(&self, now: i64) {
        self.released_at.store(now, Relaxed);
    }
}
