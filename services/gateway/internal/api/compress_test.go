package api

import (
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/services/gateway/internal/domain"
)

func body(size int) []byte {
	return []byte(strings.Repeat(`{"id":"bk_01k00000000000000000000001","status":"pending"},`, size/57+1)[:size])
}

func compressor(t testing.TB, n int) *Compressor {
	t.Helper()
	c, err := NewCompressor(n)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A small response allocates nothing and has no new header.
func TestSmallResponsesCostNothing(t *testing.T) {
	c, h, r := compressor(t, 1), http.Header{}, &http.Request{Header: http.Header{"Accept-Encoding": {"gzip, deflate, br, zstd"}}}
	small := &domain.Response{Status: http.StatusOK, ContentType: "application/json", Body: body(domain.MinCompressed - 1)}
	if n := testing.AllocsPerRun(1000, func() { c.compress(h, r, small) }); n > 0 || len(h) > 0 {
		t.Errorf("%v allocations, %v", n, h)
	}
}

// While all encoders are busy, a response is sent uncompressed.
func TestBusyEncoders(t *testing.T) {
	t.Parallel()
	c, r := compressor(t, 1), &http.Request{Header: http.Header{"Accept-Encoding": {"gzip"}}}
	send := func() (http.Header, *domain.Response) {
		h, a := http.Header{}, &domain.Response{ContentType: "application/json", ETag: `"1"`, Body: body(4096)}
		c.compress(h, r, a)
		return h, a
	}
	busy := <-c.free
	if h, a := send(); h.Get("Content-Encoding") != "" || h.Get("Vary") != "Accept-Encoding" || len(a.Body) != 4096 || a.ETag != `"1"` {
		t.Errorf("busy: %v, %d bytes, %s", h, len(a.Body), a.ETag)
	}
	c.free <- busy
	for range 3 { // an encoder is released after each response
		if h, a := send(); h.Get("Content-Encoding") != "gzip" || len(a.Body) >= 4096 || a.ETag != `"1"` {
			t.Errorf("free: %v, %d bytes, %s", h, len(a.Body), a.ETag)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	for _, bench := range []struct {
		name, accepted string
		size           int
	}{
		{"small", "gzip, zstd", 1024},
		{"identity 16 KiB", "", 16 << 10},
		{"gzip 16 KiB", "gzip", 16 << 10},
		{"zstd 16 KiB", "zstd", 16 << 10},
		{"zstd 2 MiB", "zstd", 2 << 20},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c, r := compressor(b, 1), &http.Request{Header: http.Header{"Accept-Encoding": {bench.accepted}}}
			whole := body(bench.size)
			b.ReportAllocs()
			for b.Loop() {
				c.compress(http.Header{}, r, &domain.Response{ContentType: "application/json", ETag: `"1"`, Body: whole})
			}
		})
	}
}
