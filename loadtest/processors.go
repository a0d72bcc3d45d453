package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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
