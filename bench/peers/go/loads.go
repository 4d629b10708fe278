// The workloads: each returns its result, ready to be written as JSON.
package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// With one core a goroutine would hardly notice two holders unless a holder lets others run. One grant in this many does.
const yieldEvery = 64

var errTwoHolders = errors.New("two holders")

// span is when a workload began and when it is to end, in nanoseconds.
type span struct{ from, until int64 }

// runAll starts the goroutines together, and returns when all are done or one has failed.
func runAll(goroutines int, length time.Duration, work func(i int, s span) error) (s span, err error) {
	start := make(chan struct{})
	failures := make(chan error, goroutines)
	for i := range goroutines {
		go func() {
			<-start
			failures <- work(i, s)
		}()
	}
	s.from = now()
	s.until = s.from + int64(length)
	close(start)
	for range goroutines {
		if err := <-failures; err != nil {
			return s, err
		}
	}
	return s, nil
}

// seconds has no more than six digits, so that JSON shows it without an exponent.
func seconds(nanoseconds int64) float64 {
	return math.Round(float64(nanoseconds)/1e3) / 1e6
}

type ownAnswer struct {
	Pairs   uint64   `json:"pairs"`
	Seconds float64  `json:"seconds"`
	P50     *float64 `json:"p50"`
	P99     *float64 `json:"p99"`
	P999    *float64 `json:"p999"`
}

func own(lib *library, goroutines int, length time.Duration, name string) (any, error) {
	if err := lib.connect(goroutines); err != nil {
		return nil, err
	}
	locks := make([]locker, goroutines)
	latencies := make([]histogram, goroutines)
	for i := range locks {
		locks[i] = lib.newLock(fmt.Sprintf("%s:%d", name, i))
	}
	s, err := runAll(goroutines, length, func(i int, s span) error {
		return useOwnLock(locks[i], &latencies[i], s)
	})
	if err != nil {
		return nil, err
	}
	took := now() - s.from
	all := &histogram{}
	for i := range latencies {
		all.merge(&latencies[i])
	}
	return ownAnswer{all.total, seconds(took), all.quantile(0.5), all.quantile(0.99), all.quantile(0.999)}, nil
}

func useOwnLock(lock locker, latency *histogram, s span) error {
	for before := now(); before < s.until; {
		if err := lock.lock(); err != nil {
			return err
		}
		if err := lock.unlock(); err != nil {
			return err
		}
		after := now()
		latency.add(time.Duration(after - before))
		before = after
	}
	return nil
}

func warm(lib *library, length time.Duration, name string) (any, error) {
	_, err := own(lib, 1, length/2, name)
	if err == nil {
		_, err = own(lib, 8, length/2, name)
	}
	return struct{}{}, err
}

type handAnswer struct {
	Grants  uint64   `json:"grants"`
	Changes uint64   `json:"changes"`
	Seconds float64  `json:"seconds"`
	GapP50  *float64 `json:"gap_p50"`
	GapP99  *float64 `json:"gap_p99"`
	WaitP50 *float64 `json:"wait_p50"`
	WaitMax *float64 `json:"wait_max"`
}

// contender is one goroutine of those that compete for one lock, and what it has counted.
type contender struct {
	lock   locker
	board  *board
	me     int64
	grants uint64
	gap    histogram
	wait   histogram
}

func hand(lib *library, b *board, goroutines int, length time.Duration, name string) (any, error) {
	if err := lib.connect(goroutines); err != nil {
		return nil, err
	}
	contenders := make([]contender, goroutines)
	for i := range contenders {
		contenders[i] = contender{lock: lib.newLock(name), board: b, me: int64(os.Getpid()*1000 + i)}
	}
	s, err := runAll(goroutines, length, func(i int, s span) error { return contenders[i].compete(s) })
	if err != nil {
		return nil, err
	}
	all := &contender{}
	for i := range contenders {
		all.grants += contenders[i].grants
		all.gap.merge(&contenders[i].gap)
		all.wait.merge(&contenders[i].wait)
	}
	return handAnswer{
		all.grants, all.gap.total, seconds(s.until - s.from),
		all.gap.quantile(0.5), all.gap.quantile(0.99), all.wait.quantile(0.5), all.wait.maximum(),
	}, nil
}

func (c *contender) compete(s span) error {
	for askedAt := now(); askedAt < s.until; askedAt = now() {
		if err := c.lock.lock(); err != nil {
			return err
		}
		c.note(s, askedAt, now())
		if c.grants%yieldEvery == 0 {
			runtime.Gosched()
		}
		if !c.board.isMine(c.me) {
			return errTwoHolders
		}
		c.board.leave(now())
		if err := c.lock.unlock(); err != nil {
			return err
		}
	}
	return nil
}

// note counts a grant if it arrived in time. A wait that is not over at the end counts until then.
func (c *contender) note(s span, askedAt, grantedAt int64) {
	last, releasedAt := c.board.enter(c.me)
	c.wait.add(time.Duration(min(grantedAt, s.until) - askedAt))
	if grantedAt >= s.until {
		return
	}
	c.grants++
	if last != c.me && releasedAt >= s.from {
		c.gap.add(time.Duration(grantedAt - releasedAt))
	}
}

type heldAnswer struct {
	Held         int     `json:"held"`
	Lost         int     `json:"lost"`
	Seconds      float64 `json:"seconds"`
	CPU          float64 `json:"cpu"`
	BytesPerLock int64   `json:"bytes_per_lock"`
	TakeSeconds  float64 `json:"take_seconds"`
	RSSKB        int64   `json:"rss_kb"`
	RenewedBy    string  `json:"renewed_by"`
}

// held keeps locks as users of these libraries do: they have no watchdog, so a goroutine for each lock extends it.
func held(lib *library, count int, length time.Duration, name string, say func(any)) (any, error) {
	heapBefore, from := heapBytes(), now()
	locks := make([]locker, count)
	for i := range locks {
		locks[i] = lib.newLock(fmt.Sprintf("%s:%d", name, i))
		if err := locks[i].lock(); err != nil {
			return nil, err
		}
	}
	stop := make(chan struct{})
	var lost atomic.Int64
	var renewals sync.WaitGroup
	for _, lock := range locks {
		renewals.Go(func() {
			if renew(lock, stop) != nil {
				lost.Add(1)
			}
		})
	}
	takenAt := now()
	heap := heapBytes() - heapBefore

	say(map[string]bool{"keeping": true})
	keptFrom, cpuBefore := now(), cpuNow()
	time.Sleep(length)
	cpu, kept, rss := cpuNow()-cpuBefore, now()-keptFrom, residentKB()
	close(stop)
	renewals.Wait()
	answer := heldAnswer{
		count, int(lost.Load()), seconds(kept), seconds(cpu),
		heap / int64(max(count, 1)), seconds(takenAt - from), rss, "caller",
	}
	return answer, releaseAll(locks, answer.Lost)
}

// renew extends the lock three times per lease until it is stopped or the lock is lost.
func renew(lock locker, stop <-chan struct{}) error {
	ticker := time.NewTicker(lock.lease() / 3)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return nil
		case <-ticker.C:
			if err := lock.extend(); err != nil {
				return err
			}
		}
	}
}

// releaseAll accepts as many failures as locks are known to be lost.
func releaseAll(locks []locker, lost int) error {
	for _, lock := range locks {
		if err := lock.unlock(); err != nil {
			if lost--; lost < 0 {
				return err
			}
		}
	}
	return nil
}

func heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// residentKB returns 0 if the system does not report it.
func residentKB() (kb int64) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			return kb
		}
	}
	return 0
}
