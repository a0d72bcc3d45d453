package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
