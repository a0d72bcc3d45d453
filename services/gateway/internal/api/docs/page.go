package docs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"holdfast.dev/services/gateway/internal/domain"
)

// page is a document whose bytes never change. Its compressed forms are created when a client first requests them, and kept.
type page struct {
	status      int
	contentType string
	policy      string // Content-Security-Policy
	anyOrigin   bool   // whether scripts of any site can read it
	etag        string // of the uncompressed bytes
	body        []byte
	compressed  map[string]func() []byte // by content coding; nil if compression does not help
}

func newPage(contentType, policy string, body []byte) page {
	sum := sha256.Sum256(body)
	p := page{status: http.StatusOK, contentType: contentType, policy: policy, etag: `"` + hex.EncodeToString(sum[:8]) + `"`, body: body}
	if len(body) >= domain.MinCompressed && domain.Compressible(contentType) {
		p.compressed = map[string]func() []byte{
			domain.Gzip: sync.OnceValue(func() []byte { return gzipped(body) }),
			domain.Zstd: sync.OnceValue(func() []byte { return zstandard(body) }),
		}
	}
	return p
}

// ServeHTTP implements http.Handler for GET and HEAD. It responds with 304 to a client that has the document.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", p.caching())
	if p.anyOrigin {
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "ETag")
	}
	body, etag := p.body, p.etag
	if p.compressed != nil {
		h.Add("Vary", "Accept-Encoding")
		if coding := domain.Negotiate(r.Header["Accept-Encoding"]); coding != "" {
			body, etag = p.compressed[coding](), domain.CodedETag(p.etag, coding)
			h.Set("Content-Encoding", coding)
		}
	}
	if p.status == http.StatusOK {
		h.Set("ETag", etag)
		if has(r.Header["If-None-Match"], etag) {
			h.Del("Content-Encoding")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", p.contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// caching returns the Cache-Control. A page that does not exist can exist after the next release.
func (p page) caching() string {
	if p.status != http.StatusOK {
		return "no-store"
	}
	return "max-age=300"
}

// has reports whether an If-None-Match names an entity tag.
func has(given []string, etag string) bool {
	for _, line := range given {
		for tag := range strings.SplitSeq(line, ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}

func gzipped(body []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // fails for an unknown level only
	_, _ = w.Write(body)                                    // a buffer accepts everything
	_ = w.Close()
	return out.Bytes()
}

func zstandard(body []byte) []byte {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1)) // fails for unknown options only
	defer func() { _ = w.Close() }()
	return w.EncodeAll(body, nil)
}
