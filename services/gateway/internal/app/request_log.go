package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/gateway/internal/domain"
)

// RequestLogs collects entries of the request log and writes them to Kafka in batches. It never delays a request: an entry for which
// there is no room is dropped and counted.
type RequestLogs struct {
	producer kafkax.Producer
	reads    float64 // share of the successful reads that are logged
	log      *slog.Logger
	metrics  *Metrics
	wake     chan struct{}
	waiting  atomic.Int64 // bytes of all shards
	shards   [requestLogShards]requestLogShard
	failing  bool // the last write failed; only Run uses it
}

// Bounds of the entries that wait.
const (
	queueBytes       = 4 << 20                // bytes of all entries; the entries of further requests are dropped
	maxPerTenant     = 1000                   // entries of a tenant and mode in writeEvery, so that the requests of one do not displace those of others
	maxRefused       = 10                     // of those, refused ones: see refused
	maxMessage       = 256 << 10              // bytes of one message
	firstMessage     = 2 << 10                // bytes that a message has room for at first
	writeAt          = 256 << 10              // bytes at which the entries are written before writeEvery has passed
	writeEvery       = time.Second            // how long an entry waits
	writeTimeout     = 20 * time.Second       // of one write; meanwhile new entries wait
	lastWriteTimeout = 2 * time.Second        // of the last write, when the process stops
	writePause       = 100 * time.Millisecond // between two writes, so that a write always has many entries
)

// requestLogShards is the number of keys of the messages. The entries of a tenant have one key, so that one process stores them.
const requestLogShards = 16

type requestLogShard struct {
	mu       sync.Mutex
	messages []requestLogMessage
	tenants  map[audience]tally // since counted
	counted  time.Time
	size     int // bytes of the last message that was taken
}

// tally counts the entries of a tenant and mode.
type tally struct{ entries, refused int }

type requestLogMessage struct {
	body    []byte
	entries int
}

// audience is a tenant and a mode.
type audience struct {
	tenant ids.Tenant
	mode   caller.Mode
}

// NewRequestLogs logs all writes, all errors, and the share `reads` of other reads, from 0 to 1. Of the responses 401 and 429, it logs
// maxRefused per tenant and mode in writeEvery. Run writes the entries.
func NewRequestLogs(producer kafkax.Producer, reads float64, log *slog.Logger, m *Metrics) *RequestLogs {
	l := &RequestLogs{producer: producer, reads: reads, log: log, metrics: m, wake: make(chan struct{}, 1)}
	for i := range l.shards {
		l.shards[i].tenants = map[audience]tally{}
	}
	return l
}

// Wants reports whether a request with a response of the status is logged.
func (l *RequestLogs) Wants(method string, status int) bool {
	return status >= http.StatusBadRequest || method != http.MethodGet || l.reads > 0 && rand.Float64() < l.reads //nolint:gosec // a sample
}

// Add adds an entry, or drops it. It does not keep r.
func (l *RequestLogs) Add(r *domain.RequestLog) {
	if l.waiting.Load() >= queueBytes {
		l.metrics.RequestLogs.WithLabelValues("full").Inc()
		return
	}
	tenant := r.Caller.Tenant.UUID()
	shard := &l.shards[tenant[len(tenant)-1]%requestLogShards]
	if !shard.allow(audience{r.Caller.Tenant, r.Caller.Mode}, refused(r.Status)) {
		l.metrics.RequestLogs.WithLabelValues("tenant").Inc()
		return
	}
	e, _ := encoders.Get().(*encoder)
	defer encoders.Put(e)
	entry, err := e.encode(r)
	if err != nil {
		l.metrics.RequestLogs.WithLabelValues("failed").Inc()
		return
	}
	shard.add(entry)
	if l.waiting.Add(int64(len(entry))) >= writeAt {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// refused reports whether a response is one that a client can cause without a limit. A client that does not wait, or that uses a revoked
// or expired credential, must not fill the log of its tenant, nor use the database.
func refused(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusUnauthorized
}

// allow counts an entry of a tenant, unless the tenant has too many.
func (s *requestLogShard) allow(a audience, refused bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tenants[a]
	if n.entries >= maxPerTenant || refused && n.refused >= maxRefused {
		return false
	}
	n.entries++
	if refused {
		n.refused++
	}
	s.tenants[a] = n
	return true
}

// add appends an encoded entry.
func (s *requestLogShard) add(entry []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.messages) - 1
	if last < 0 || len(s.messages[last].body)+len(entry) > maxMessage {
		s.messages = append(s.messages, requestLogMessage{body: make([]byte, 0, max(firstMessage, s.size))})
		last++
	}
	m := &s.messages[last]
	m.body = append(m.body, entry...)
	m.entries++
}

// take returns the entries that wait. After writeEvery, it lets each tenant add new ones.
func (s *requestLogShard) take(now time.Time) []requestLogMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.messages
	s.messages, s.size = nil, 0
	if n := len(taken); n > 0 {
		s.size = len(taken[n-1].body)
	}
	if now.Sub(s.counted) >= writeEvery {
		s.counted = now
		clear(s.tenants)
	}
	return taken
}

// Run writes the entries until ctx ends, and then once more. An entry that cannot be written is dropped.
func (l *RequestLogs) Run(ctx context.Context) error {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.write(context.WithoutCancel(ctx), lastWriteTimeout)
			return nil
		case <-tick.C:
		case <-l.wake:
		}
		l.write(ctx, writeTimeout)
		select {
		case <-ctx.Done():
		case <-time.After(writePause):
		}
	}
}

// write writes the entries that wait.
func (l *RequestLogs) write(ctx context.Context, timeout time.Duration) {
	var messages []kafkax.Message
	entries, bytes, now := 0, 0, time.Now()
	for i := range l.shards {
		for _, m := range l.shards[i].take(now) {
			messages = append(messages, kafkax.Message{Topic: topic, Key: strconv.Itoa(i), Value: m.body})
			entries, bytes = entries+m.entries, bytes+len(m.body)
		}
	}
	if entries == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := l.producer.Produce(ctx, messages...)
	l.waiting.Add(int64(-bytes))
	result := "sent"
	if err != nil {
		result = "failed"
	}
	l.metrics.RequestLogs.WithLabelValues(result).Add(float64(entries))
	if down := err != nil; down != l.failing {
		l.failing = down
		l.changed(err)
	}
}

// changed logs once per outage, not once per write.
func (l *RequestLogs) changed(err error) {
	if err != nil {
		l.log.Warn("request log entries dropped: Kafka does not accept them", slog.Any("error", err))
		return
	}
	l.log.Info("request log entries accepted by Kafka again")
}

// encoder is the memory in which an entry is encoded.
type encoder struct {
	message eventsv1.RequestLogs
	tenant  [16]byte
	names   []string
	hash    [sha256.Size]byte
	out     []byte
}

var encoders = sync.Pool{New: func() any {
	return &encoder{message: eventsv1.RequestLogs{Entries: []*eventsv1.RequestLog{{}}}}
}}

// encode returns a message with one entry. The result is valid until the encoder is used again.
func (e *encoder) encode(r *domain.RequestLog) (out []byte, err error) {
	to := e.message.GetEntries()[0]
	to.Reset()
	e.tenant = r.Caller.Tenant.UUID()
	to.Id, to.TenantUuid, to.Livemode = r.ID, e.tenant[:], r.Caller.Live()
	to.CredentialId, to.CredentialType = r.Caller.Credential, r.Caller.Kind
	to.Status, to.Method, to.Route = int32(r.Status), r.Method, r.Route
	to.Path, to.ObjectId = domain.LoggedPath(r.Route, r.Path)
	to.ObjectId = cmp.Or(to.GetObjectId(), r.Created)
	if r.Query != "" {
		e.names = domain.QueryNames(e.names[:0], r.Query)
		to.QueryNames = e.names
	}
	to.Code, to.Param = r.Code, domain.LoggedParam(r.Param)
	to.DurationMs = r.Duration.Round(time.Millisecond).Milliseconds()
	to.ClientNetwork = domain.ClientNetwork(r.Address)
	to.UserAgent = domain.LoggedUserAgent(r.UserAgent)
	to.SdkVersion = domain.SDKVersion(to.GetUserAgent())
	if r.IdempotencyKey != "" {
		e.hash = sha256.Sum256([]byte(r.IdempotencyKey))
		to.IdempotencyKeyHash = e.hash[:]
	}
	to.Replayed = r.Replayed
	e.out, err = proto.MarshalOptions{}.MarshalAppend(e.out[:0], &e.message)
	return e.out, err
}
