// The lock libraries behind one interface.
package main

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
)

// locker is one lock for one goroutine.
type locker interface {
	// lock returns when the lock is held. If the library gives up an attempt, it is repeated at once.
	lock() error
	// unlock fails if the lock was no longer held.
	unlock() error
	// extend sets the lease back to its full length.
	extend() error
	lease() time.Duration
}

type library struct {
	name    string
	module  string
	newLock func(name string) locker
	// connect opens as many connections as this number of goroutines can use.
	connect func(goroutines int) error
}

const (
	// redislock asks for a lease in each call and has no default.
	redislockLease = 30 * time.Second
	// redislock does not retry by default.
	redislockBackoff = 100 * time.Millisecond
	// redsync's default, which it does not export.
	redsyncLease = 8 * time.Second
	// redigo's default is to keep no connection; this keeps one for each goroutine of the largest load.
	redigoIdle = 64
)

// openLibrary returns nil if there is no such variant.
func openLibrary(variant, url string) (*library, error) {
	switch variant {
	case "redsync-goredis":
		client, err := openGoRedis(url)
		if err != nil {
			return nil, err
		}
		connect := func(n int) error { return connectGoRedis(client, n) }
		return newRedsync("redsync (go-redis)", redsync.New(redsyncgoredis.NewPool(client)), connect), nil
	case "redsync-redigo":
		pool := &redigo.Pool{MaxIdle: redigoIdle, Dial: func() (redigo.Conn, error) { return redigo.DialURL(url) }}
		connect := func(n int) error { return connectRedigo(pool, n) }
		return newRedsync("redsync (redigo)", redsync.New(redsyncredigo.NewPool(pool)), connect), nil
	case "redislock":
		client, err := openGoRedis(url)
		if err != nil {
			return nil, err
		}
		return newRedislock(client), nil
	}
	return nil, errors.New("unknown variant: " + variant)
}

// version returns the version of the library that this program was built with.
func (l *library) version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == l.module {
			return dependency.Version[1:]
		}
	}
	return "unknown"
}

func openGoRedis(url string) (*redis.Client, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(options), nil
}

func connectGoRedis(client *redis.Client, goroutines int) error {
	for range min(goroutines, client.Options().PoolSize) {
		conn := client.Conn()
		defer conn.Close()
		if err := conn.Ping(context.Background()).Err(); err != nil {
			return err
		}
	}
	return nil
}

func connectRedigo(pool *redigo.Pool, goroutines int) error {
	for range goroutines {
		conn := pool.Get()
		defer conn.Close()
		if _, err := conn.Do("PING"); err != nil {
			return err
		}
	}
	return nil
}

type redsyncLock struct{ mutex *redsync.Mutex }

func newRedsync(name string, rs *redsync.Redsync, connect func(int) error) *library {
	newLock := func(name string) locker { return redsyncLock{rs.NewMutex(name)} }
	return &library{name, "github.com/go-redsync/redsync/v4", newLock, connect}
}

func (l redsyncLock) lock() error {
	for {
		err := l.mutex.Lock()
		var taken *redsync.ErrTaken
		if !errors.Is(err, redsync.ErrFailed) && !errors.As(err, &taken) {
			return err
		}
	}
}

func (l redsyncLock) unlock() error {
	_, err := l.mutex.Unlock()
	return err
}

func (l redsyncLock) extend() error {
	_, err := l.mutex.Extend()
	return err
}

func (l redsyncLock) lease() time.Duration { return redsyncLease }

type redislockLock struct {
	client *redislock.Client
	name   string
	held   *redislock.Lock
}

func newRedislock(client *redis.Client) *library {
	locks := redislock.New(client)
	newLock := func(name string) locker { return &redislockLock{client: locks, name: name} }
	connect := func(n int) error { return connectGoRedis(client, n) }
	return &library{"redislock", "github.com/bsm/redislock", newLock, connect}
}

func (l *redislockLock) lock() (err error) {
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockBackoff)}
	for {
		l.held, err = l.client.Obtain(context.Background(), l.name, redislockLease, options)
		if !errors.Is(err, redislock.ErrNotObtained) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

func (l *redislockLock) unlock() error {
	return l.held.Release(context.Background())
}

func (l *redislockLock) extend() error {
	return l.held.Refresh(context.Background(), redislockLease, nil)
}

func (l *redislockLock) lease() time.Duration { return redislockLease }
