// Benchmark peer: redsync over go-redis, redsync over redigo, or redislock; a goroutine for each thread.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const usage = "usage: go-peer redsync-goredis|redsync-redigo|redislock [--processes N] (URL BOARD | --start URL NAME)"

type arguments struct {
	variant string
	start   bool
	url     string
	// The lock's name with --start, else the path of the board.
	subject string
}

func parseArguments() (a arguments, ok bool) {
	var rest []string
	for i := 1; i < len(os.Args); i++ {
		switch os.Args[i] {
		case "--start":
			a.start = true
		case "--processes":
			// The board is shared between processes, so their number does not matter here.
			i++
		default:
			rest = append(rest, os.Args[i])
		}
	}
	if len(rest) != 3 {
		return a, false
	}
	a.variant, a.url, a.subject = rest[0], rest[1], rest[2]
	return a, true
}

func say(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func unsupported(why string) (any, error) {
	return map[string]string{"unsupported": why}, nil
}

func answer(lib *library, b *board, line string) (any, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return nil, fmt.Errorf("empty command")
	case words[0] == "async":
		return unsupported("goroutines are the library's only form of concurrency; own uses them")
	case words[0] == "fair":
		return unsupported("no fair lock")
	case words[0] == "rw":
		return unsupported("no read-write lock")
	case words[0] == "warm" && len(words) == 3:
		length, err := parseLength(words[1])
		if err != nil {
			return nil, err
		}
		return warm(lib, length, words[2])
	case len(words) == 4:
		return answerLoad(lib, b, words)
	}
	return nil, fmt.Errorf("unknown command: %s", line)
}

func answerLoad(lib *library, b *board, words []string) (any, error) {
	count, err := strconv.Atoi(words[1])
	if err != nil {
		return nil, err
	}
	length, err := parseLength(words[2])
	if err != nil {
		return nil, err
	}
	switch words[0] {
	case "own":
		return own(lib, count, length, words[3])
	case "hand":
		return hand(lib, b, count, length, words[3])
	case "held":
		return held(lib, count, length, words[3], say)
	}
	return nil, fmt.Errorf("unknown command: %s", words[0])
}

func parseLength(seconds string) (time.Duration, error) {
	value, err := strconv.ParseFloat(seconds, 64)
	return time.Duration(value * float64(time.Second)), err
}

// startOnly takes one lock as soon as possible, then waits for a byte of input.
func startOnly(lib *library, name string) error {
	if err := lib.newLock(name).lock(); err != nil {
		return err
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
	return nil
}

func serve(lib *library, path string) error {
	b, err := openBoard(path)
	if err != nil {
		return err
	}
	if err := lib.connect(1); err != nil {
		return err
	}
	say(map[string]any{"ready": true, "peer": lib.name, "version": lib.version()})
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() && strings.TrimSpace(input.Text()) != "quit" {
		result, err := answer(lib, b, input.Text())
		if err != nil {
			return err
		}
		say(result)
	}
	return input.Err()
}

func run(a arguments) error {
	lib, err := openLibrary(a.variant, a.url)
	if err != nil {
		return err
	}
	if a.start {
		return startOnly(lib, a.subject)
	}
	return serve(lib, a.subject)
}

func main() {
	a, ok := parseArguments()
	if !ok {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(a); err != nil {
		say(map[string]string{"error": err.Error()})
		os.Exit(1)
	}
}
