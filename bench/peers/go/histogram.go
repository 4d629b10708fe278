// Counts durations in buckets that are at most one per cent wide.
package main

import (
	"math"
	"math/bits"
	"time"
)

const (
	// Each power of two is divided into this many buckets.
	stepBits = 7
	steps    = 1 << stepBits
	// Covers 18 minutes in nanoseconds; longer ones go into the last bucket.
	buckets = steps * 34
)

type histogram struct {
	counts  [buckets]uint64
	total   uint64
	largest time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(uint64(d))]++
	h.total++
	h.largest = max(h.largest, d)
}

func (h *histogram) merge(other *histogram) {
	for i, count := range other.counts {
		h.counts[i] += count
	}
	h.total += other.total
	h.largest = max(h.largest, other.largest)
}

// quantile returns the microseconds below which this fraction of all durations lies, or nil if there are none.
func (h *histogram) quantile(fraction float64) *float64 {
	rank := max(1, uint64(math.Ceil(float64(h.total)*fraction)))
	seen := uint64(0)
	for i, count := range h.counts {
		seen += count
		if seen >= rank {
			return microseconds(min(middleOf(i), float64(h.largest)))
		}
	}
	return nil
}

func (h *histogram) maximum() *float64 {
	if h.total == 0 {
		return nil
	}
	return microseconds(float64(h.largest))
}

func microseconds(nanoseconds float64) *float64 {
	rounded := math.Round(nanoseconds/100) / 10
	return &rounded
}

func bucketOf(value uint64) int {
	if value < steps {
		return int(value)
	}
	shift := bits.Len64(value) - 1 - stepBits
	within := int(value>>shift) - steps
	return min((shift+1)*steps+within, buckets-1)
}

func middleOf(bucket int) float64 {
	if bucket < steps {
		return float64(bucket)
	}
	width := float64(uint64(1) << (bucket/steps - 1))
	return float64(steps+bucket%steps)*width + width/2
}
