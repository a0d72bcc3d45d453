package obs_test

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/obs"
)

// TestExport exports a span to a collector that is busy at the first request.
func TestExport(t *testing.T) { //nolint:paralleltest // the tracer is global, and the headers are in the environment
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%2Cb, team = one")
	type export struct {
		header http.Header
		body   []byte
	}
	before := otel.GetTracerProvider()
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	exports := make(chan export, 2)
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/base/v1/traces" {
			body, _ := io.ReadAll(r.Body)
			exports <- export{r.Header, body}
		}
	}))
	defer server.Close()
	stop, err := obs.StartTracing(t.Context(), "example", server.URL+"/base", 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := obs.Span(t.Context(), "work", trace.SpanKindInternal)
	id := trace.SpanContextFromContext(ctx).TraceID()
	end(io.EOF)
	flush, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := stop(flush); err != nil {
		t.Fatal(err)
	}
	got := <-exports
	for name, want := range map[string]string{"Content-Type": "application/x-protobuf", "Api-Key": "a,b", "Team": "one"} {
		if value := got.header.Get(name); value != want {
			t.Errorf("header %s: %q, not %q", name, value, want)
		}
	}
	var sent tracepb.TracesData
	if err := proto.Unmarshal(got.body, &sent); err != nil {
		t.Fatal(err)
	}
	resource := sent.GetResourceSpans()[0]
	span := resource.GetScopeSpans()[0].GetSpans()[0]
	if service := resource.GetResource().GetAttributes()[0].GetValue().GetStringValue(); service != "example" {
		t.Errorf("service %q", service)
	}
	if hex.EncodeToString(span.GetTraceId()) != id.String() || span.GetName() != "work" || len(span.GetEvents()) != 1 {
		t.Errorf("span %v, not of trace %s", span, id)
	}
}

func TestMalformedHeaders(t *testing.T) { //nolint:paralleltest // the headers are in the environment
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=%zz")
	if _, err := obs.StartTracing(t.Context(), "example", "http://127.0.0.1", 1); err == nil {
		t.Error("a malformed header is accepted")
	}
}
