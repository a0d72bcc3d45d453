package app

import (
	"context"
	"net/http"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"

	"holdfast.dev/services/gateway/internal/domain"
)

// Streams limits the number of open streams of each credential in this process, and ends all of them when the process stops.
type Streams struct {
	most    int    // for one credential
	kind    string // what the streams are called, in the plural
	metrics *Metrics
	running context.Context // ends with Stop
	stop    context.CancelFunc
	mu      sync.Mutex
	open    map[string]int // guarded by mu; by credential id, without zeros
}

// NewStreams allows each credential at most `most` streams of a kind at a time.
func NewStreams(most int, kind string, m *Metrics) *Streams {
	s := &Streams{most: most, kind: kind, metrics: m, open: map[string]int{}}
	s.running, s.stop = context.WithCancel(context.Background())
	return s
}

// Stop ends all streams and allows no new ones. The server's graceful stop would wait for them.
func (s *Streams) Stop() { s.stop() }

// begin counts one more stream of the credential. It returns ErrStreams if the credential has too many. The context ends with ctx,
// or with the cause ErrStopping when Stop is called. end releases the stream.
func (s *Streams) begin(ctx context.Context, credential string) (streaming context.Context, end func(), err error) {
	if s.running.Err() != nil {
		return nil, nil, apperr.ErrUnavailable.WithCause(domain.ErrStopping)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[credential] >= s.most {
		s.metrics.Limited.Inc()
		return nil, nil, domain.ErrStreams.WithMessage("The credential already has %d open %s, the maximum. Close one, or wait for the time in Retry-After.", s.open[credential], s.kind)
	}
	s.open[credential]++
	s.metrics.Streams.Inc()
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(s.running, func() { cancel(domain.ErrStopping) })
	return ctx, func() {
		forget()
		cancel(nil)
		s.end(credential)
	}, nil
}

func (s *Streams) end(credential string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics.Streams.Dec()
	if s.open[credential]--; s.open[credential] == 0 {
		delete(s.open, credential)
	}
}

// maxDownload limits the duration of a download that is forwarded while it arrives. The services end their responses slightly
// earlier.
const maxDownload = 5*time.Minute + 10*time.Second

// Stream forwards the response of op's service to w while it arrives, until c has ended. An error means that nothing was written.
func (p *Pipeline) Stream(ctx context.Context, w http.ResponseWriter, op *contract.Operation, c *Credential, call *domain.Call) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() { p.watch(ctx, c, cancel) })
	return p.StreamFor(ctx, w, op.Service, call.Caller.Credential, call)
}

// StreamFor is Stream for a call without a credential. holder is the name under which its streams are counted.
func (p *Pipeline) StreamFor(ctx context.Context, w http.ResponseWriter, service, holder string, call *domain.Call) error {
	streams := p.Streams
	if call.Whole {
		streams = p.Downloads
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxDownload)
		defer cancel()
	}
	ctx, end, err := streams.begin(ctx, holder)
	if err != nil {
		return err
	}
	defer end()
	return p.Upstreams[service].Stream(ctx, w, call)
}
