package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/loadtest/internal/stack"
)

// processors returns the processor time of the platform's processes and of this one so far.
func (b *bench) processors() usage {
	all := usage{}
	files, _ := filepath.Glob(filepath.Join(b.platform.Dir, ".run", "pids", "*"))
	for _, file := range files {
		name := filepath.Base(file)
		pid, err := b.platform.PID(name)
		if err != nil {
			continue // it was just restarted
		}
		measure := stack.CPU // with its children: PostgreSQL's backends
		if name == "local" {
			measure = stack.Own // its children are counted by themselves
		}
		if used, err := measure(pid); err == nil {
			all[name] = used
		}
	}
	if own, err := stack.Own(os.Getpid()); err == nil {
		all["loadtest"] = own
	}
	return all
}

// redisCalls returns how many scripts Redis has run.
func redisCalls(ctx context.Context, url string) (int, error) {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return 0, err
	}
	c := redis.NewClient(opt)
	defer func() { _ = c.Close() }()
	info, err := c.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		var calls int
		if n, _ := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,", &calls); n == 1 {
			return calls, nil
		}
	}
	return 0, nil
}

// scanMetric reads the sum and the count of a histogram in Prometheus' text format.
func scanMetric(text io.Reader, name string) (sum, count float64, err error) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), name+"_sum %g", &sum)
		_, _ = fmt.Sscanf(lines.Text(), name+"_count %g", &count)
	}
	return sum, count, lines.Err()
}

// profile takes a CPU profile of a process while a figure is measured, when BENCH_PROFILE is set. The returned function
// waits for it. An error is printed and ends nothing. The profile costs a few percent.
func (b *bench) profile(ctx context.Context, name, addr string) (done func()) {
	if b.Profile == "" || addr == "" {
		return func() {}
	}
	file := filepath.Join(b.Profile, strings.ReplaceAll(name, " ", "-")+".pprof")
	finished := make(chan error, 1)
	go func() {
		finished <- fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", addr, int(b.slice().Seconds())), file)
	}()
	return func() {
		if err := <-finished; err != nil {
			b.say("no profile of %s: %v", name, err)
			return
		}
		b.say("profile: go tool pprof -top %s", file)
	}
}

func fetch(ctx context.Context, url, file string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
