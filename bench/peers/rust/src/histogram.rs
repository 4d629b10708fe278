//! Counts durations in buckets that are at most one per cent wide.

/// Each power of two is divided into this many buckets.
const STEPS: usize = 128;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Covers 18 minutes in nanoseconds; longer ones go into the last bucket.
const BUCKETS: usize = STEPS * 34;

pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    largest: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Histogram {
            counts: vec![0; BUCKETS],
            total: 0,
            largest: 0,
        }
    }

    pub fn add(&mut self, nanoseconds: i64) {
        let value = nanoseconds.max(0) as u64;
        self.counts[bucket_of(value)] += 1;
        self.total += 1;
        self.largest = self.largest.max(value);
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.largest = self.largest.max(other.largest);
    }

    /// The duration in microseconds, as JSON, below which this fraction of all durations lies.
    pub fn quantile(&self, fraction: f64) -> String {
        let rank = ((self.total as f64 * fraction).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return microseconds(middle_of(bucket).min(self.largest as f64));
            }
        }
        "null".to_string()
    }

    pub fn maximum(&self) -> String {
        match self.total {
            0 => "null".to_string(),
            _ => microseconds(self.largest as f64),
        }
    }
}

fn microseconds(nanoseconds: f64) -> String {
    format!("{:.1}", nanoseconds / 1000.0)
}

fn bucket_of(value: u64) -> usize {
    if value < STEPS as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    let within = (value >> shift) as usize - STEPS;
    ((shift as usize + 1) * STEPS + within).min(BUCKETS - 1)
}

fn middle_of(bucket: usize) -> f64 {
    if bucket < STEPS {
        return bucket as f64;
    }
    let width = (1u64 << (bucket / STEPS - 1)) as f64;
    (STEPS + bucket % STEPS) as f64 * width + width / 2.0
}
