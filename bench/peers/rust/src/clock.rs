//! Clocks and memory of this process.

/// Nanoseconds on the clock that all processes of the machine share.
pub fn now() -> i64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// CPU time that this process has used, in nanoseconds.
pub fn cpu_now() -> i64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Bytes that are currently allocated.
pub fn heap_bytes() -> usize {
    // SAFETY: has no preconditions.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// Resident memory of this process.
pub fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn read_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
