// The shared memory in which competing processes note who held the lock last.
package main

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

type board struct {
	holder     atomic.Int64
	releasedAt atomic.Int64
}

// openBoard maps the file for as long as the process lives.
func openBoard(path string) (*board, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size := int(unsafe.Sizeof(board{}))
	if info, err := file.Stat(); err != nil || info.Size() < int64(size) {
		return nil, errors.New("board is shorter than 16 bytes")
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*board)(unsafe.Pointer(&memory[0])), nil
}

// enter notes the new holder, and returns the last one with the time of its release.
func (b *board) enter(me int64) (last int64, releasedAt int64) {
	last, releasedAt = b.holder.Load(), b.releasedAt.Load()
	b.holder.Store(me)
	return last, releasedAt
}

// isMine returns whether nobody else has entered since.
func (b *board) isMine(me int64) bool {
	return b.holder.Load() == me
}

func (b *board) leave(now int64) {
	b.releasedAt.Store(now)
}

// The runtime's own clock is CLOCK_MONOTONIC but only gives differences, so it is aligned with the system's once.
var (
	clockBase   = time.Now()
	clockOffset = clockNow(unix.CLOCK_MONOTONIC)
)

// now returns nanoseconds on the clock that all processes of the machine share.
func now() int64 {
	return clockOffset + int64(time.Since(clockBase))
}

// cpuNow returns the CPU time that this process has used, in nanoseconds.
func cpuNow() int64 {
	return clockNow(unix.CLOCK_PROCESS_CPUTIME_ID)
}

func clockNow(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
