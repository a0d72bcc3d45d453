package obs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// The bounds of one export.
const (
	exportTimeout = 10 * time.Second // of one request
	exportRetries = 3
	exportBackoff = time.Second // before the first retry
	longestWait   = 10 * time.Second
)

var errCollectorBusy = errors.New("the collector is busy")

// collector sends spans to an OTLP/HTTP collector. The client of OpenTelemetry for HTTP needs gRPC, which takes longer to build than
// the rest of libs.
type collector struct {
	url     string
	headers http.Header
	client  *http.Client
	again   failsafe.Executor[any]
}

// newCollector returns the collector at url. headers has the form of OTEL_EXPORTER_OTLP_HEADERS: name=value pairs with commas between
// them, percent-encoded.
func newCollector(url, headers string) (*collector, error) {
	h, err := parseHeaders(headers)
	if err != nil {
		return nil, err
	}
	h.Set("Content-Type", "application/x-protobuf")
	retry := retrypolicy.NewBuilder[any]().
		HandleErrors(errCollectorBusy).
		WithMaxRetries(exportRetries).
		WithBackoff(exportBackoff, longestWait).
		WithJitterFactor(0.25).
		ReturnLastFailure().
		Build()
	return &collector{url: url, headers: h, client: &http.Client{Timeout: exportTimeout}, again: failsafe.With[any](retry)}, nil
}

func parseHeaders(text string) (http.Header, error) {
	h := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", strings.TrimSpace(name), err)
		}
		h.Set(strings.TrimSpace(name), value)
	}
	return h, nil
}

// Start does nothing: the first export connects.
func (c *collector) Start(context.Context) error { return nil }

// Stop closes idle connections.
func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, with retries while the collector cannot be reached or is busy. TracesData is encoded like the request of
// an export.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	return c.again.WithContext(ctx).Run(func() error { return c.send(ctx, body) })
}

func (c *collector) send(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = c.headers.Clone()
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", errCollectorBusy, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection is used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("%w: %s", errCollectorBusy, resp.Status)
	}
	return fmt.Errorf("the collector responded with %s", resp.Status)
}
