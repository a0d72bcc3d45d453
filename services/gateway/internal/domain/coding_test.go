package domain

import (
	"strings"
	"testing"
)

func TestNegotiate(t *testing.T) {
	t.Parallel()
	for accepted, want := range map[string]string{
		"":                              "",
		"gzip":                          Gzip,
		"x-gzip":                        Gzip,
		"GZIP":                          Gzip,
		"zstd":                          Zstd,
		"gzip, zstd":                    Zstd,
		"zstd, gzip":                    Zstd,
		"gzip, deflate, br, zstd":       Zstd,
		"gzip;q=1.0, zstd;q=0.5":        Gzip,
		"gzip;q=0.2, zstd;q=0.5":        Zstd,
		"gzip; q = 0.5":                 Gzip,
		"gzip;q=0":                      "",
		"zstd;q=0, gzip":                Gzip,
		"*":                             Zstd,
		"*;q=0":                         "",
		"zstd;q=0, *":                   Gzip,
		"gzip;q=0, zstd;q=0, *":         "",
		"*, gzip;q=0":                   Zstd,
		"br, deflate":                   "",
		"identity":                      "",
		"identity;q=1, gzip;q=0.5":      "",
		"gzip;q=0.5, identity;q=1":      "",
		"identity;q=0.5, gzip;q=1":      Gzip,
		"identity, gzip":                Gzip,
		"gzip;q=2":                      "",
		"gzip;q=NaN":                    "",
		"gzip;q=x":                      "",
		"gzip;q=-1":                     "",
		", ,gzip;;q=1":                  Gzip,
		"gzipped, not-zstd":             "",
		"gzip;level=9;q=0, zstd;q=0.01": Zstd,
	} {
		if got := Negotiate([]string{accepted}); got != want {
			t.Errorf("%q: %q, want %q", accepted, got, want)
		}
		if got := Negotiate(strings.SplitAfter(accepted, ",")); got != want {
			t.Errorf("%q on several lines: %q, want %q", accepted, got, want)
		}
	}
}

func TestNegotiateDoesNotAllocate(t *testing.T) {
	accepted := []string{"gzip, deflate, br;q=0.5, zstd"}
	if n := testing.AllocsPerRun(100, func() { Negotiate(accepted) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCompressible(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "text/html; charset=utf-8": true, "text/calendar": true,
		"text/css": true, "application/yaml": true, "text/event-stream": false, "application/pdf": false, "image/png": false, "": false,
	} {
		if Compressible(contentType) != want {
			t.Errorf("%q: %v", contentType, !want)
		}
	}
}

func TestETags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ etag, coding, coded string }{
		{`"3"`, Gzip, `"3-gzip"`}, {`"3"`, Zstd, `"3-zstd"`}, {`W/"3"`, Gzip, `W/"3"`}, {`""`, Gzip, `"-gzip"`}, {"", Gzip, ""},
	} {
		if got := CodedETag(tc.etag, tc.coding); got != tc.coded {
			t.Errorf("%s in %s is %s, want %s", tc.etag, tc.coding, got, tc.coded)
		}
	}
}
