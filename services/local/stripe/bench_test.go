package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkCreate creates intents from many clients at the same time.
func BenchmarkCreate(b *testing.B) {
	s := startForBenchmark(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, err := http.NewRequest(http.MethodPost, s+"/v1/payment_intents", strings.NewReader(
				"amount=2000&currency=usd&automatic_payment_methods[enabled]=true&metadata[booking_id]=bk_1&description=Deposit"))
			if err != nil {
				b.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer sk_test_demo")
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				b.Errorf("status %d", resp.StatusCode)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
}

func startForBenchmark(b *testing.B) string {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	address, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- run(ctx, testConfig(b.TempDir()), func(a string) { address <- a }) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return "http://" + <-address
}
