package api

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"holdfast.dev/services/gateway/internal/domain"
)

// Compressor compresses whole responses. Its encoders bound the processors and the memory that compression uses: a response that finds
// none free is sent uncompressed. Streams, pages of other services, and the errors of the gateway do not pass it. A page can contain
// both secrets and input of others, whose guesses its compressed size would reveal (BREACH). The API is safe from this, because browsers
// never add its credentials to the requests of other sites.
type Compressor struct {
	free chan *encoder
}

// encoder is what one response at a time uses.
type encoder struct {
	gzip *gzip.Writer
	zstd *zstd.Encoder
}

// window is the memory in bytes over which zstd finds repetitions. It is larger than most responses.
const window = 256 << 10

// NewCompressor allows n responses to be compressed at the same time; 0 compresses none. The fastest levels are used: higher ones take
// several times as long for a few percent of size.
func NewCompressor(n int) (*Compressor, error) {
	c := &Compressor{free: make(chan *encoder, n)}
	for range n {
		e := &encoder{}
		var err error
		if e.gzip, err = gzip.NewWriterLevel(nil, gzip.BestSpeed); err != nil {
			return nil, err
		}
		e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
		if err != nil {
			return nil, err
		}
		c.free <- e
	}
	return c, nil
}

// compress compresses the body of a response if the client accepts it, the body is large enough, and an encoder is free. It sets the
// headers for it. The response can be one that was already sent to another client, so its body is replaced and never changed. The
// entity tag stays the same, because clients read it as the version of the object and send it as If-Match. It does not identify the
// bytes; the API has no partial responses, for which it would have to.
func (c *Compressor) compress(h http.Header, r *http.Request, a *domain.Response) {
	if len(a.Body) < domain.MinCompressed || cap(c.free) == 0 || a.Passed != nil || !domain.Compressible(a.ContentType) ||
		strings.Contains(a.CacheControl, "no-transform") {
		return
	}
	h.Add("Vary", "Accept-Encoding")
	coding := domain.Negotiate(r.Header["Accept-Encoding"])
	if coding == "" {
		return
	}
	select {
	case e := <-c.free:
		if body := e.encode(coding, a.Body); len(body) < len(a.Body) {
			a.Body = body
			h.Set("Content-Encoding", coding)
		}
		c.free <- e
	default: // all encoders are busy
	}
}

func (e *encoder) encode(coding string, body []byte) []byte {
	const ratio = 3 // JSON of this API shrinks to less than this fraction
	if coding == domain.Zstd {
		return e.zstd.EncodeAll(body, make([]byte, 0, len(body)/ratio))
	}
	out := bytes.NewBuffer(make([]byte, 0, len(body)/ratio))
	e.gzip.Reset(out)
	_, _ = e.gzip.Write(body) // a buffer accepts everything
	_ = e.gzip.Close()
	return out.Bytes()
}
