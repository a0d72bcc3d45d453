// Package api is the gateway's door in: it finds the route of each request in the contract, runs the checks
// in their one order, and writes the answer.
package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/api/docs"
	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

// Door answers every request that reaches the gateway.
type Door struct {
	Contract *contract.Contract
	Gate     *app.Gate
	Docs     *docs.Pages
	Hops     int // trusted proxies in front, whose X-Forwarded-For is believed

	BodyPatience time.Duration // for the next bytes of a body, then it is cut
	ReadTimeout  time.Duration // for the whole body; 0: none
}

const (
	base   = "/api/v1"
	legacy = "/v1"
)

// ServeHTTP gives the request its id and makes sure that whatever happens is answered in the envelope.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := ids.New[ids.RequestPrefix]().String()
	w.Header()["X-Request-Id"] = []string{id}
	ctx := r.Context()
	obs.Add(ctx, slog.String("request_id", id))
	if theirs := r.Header.Get("X-Request-Id"); theirs != "" {
		obs.Add(ctx, slog.String("client_request_id", shorten(theirs)))
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler { //nolint:errorlint,err113 // a panic value
			panic(p)
		}
		obs.Add(ctx, slog.String("stack", string(debug.Stack())))
		d.fail(w, r, id, fmt.Errorf("panic: %v", p)) //nolint:err113 // for the log
	}()
	if err := d.route(w, r, id); err != nil {
		d.fail(w, r, id, err)
	}
}

func shorten(s string) string { return s[:min(len(s), 128)] }

// fail is where an error ends: on the wide log line, and in the answer.
func (d *Door) fail(w http.ResponseWriter, r *http.Request, id string, err error) {
	e := apperr.As(err)
	attrs := []slog.Attr{slog.String("code", e.Code)}
	if errors.Unwrap(e) != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	obs.Add(r.Context(), attrs...)
	httpx.WriteError(w, id, err)
}

// route hands the three bases to the contract and the rest to the documents.
func (d *Door) route(w http.ResponseWriter, r *http.Request, id string) error {
	body := d.arriving(w, r)
	if strings.Contains(r.RequestURI, "#") { // what follows it would be lost on the way
		return domain.ErrTarget
	}
	path := r.URL.EscapedPath()
	rest, ok := strings.CutPrefix(path, base)
	if !ok || rest == "" || rest[0] != '/' {
		rest, ok = strings.CutPrefix(path, legacy)
	}
	if !ok || rest == "" || rest[0] != '/' {
		return d.page(w, r)
	}
	op, _, allow := d.Contract.Match(r.Method, rest)
	if op == nil {
		return missing(allow)
	}
	obs.SetRoute(r.Context(), op.Path)
	return d.operation(w, r, &request{op: op, id: id, path: rest, address: d.address(r), arrival: body})
}

func missing(allow []string) error {
	if len(allow) == 0 {
		return domain.ErrNotFound
	}
	return domain.ErrMethod.WithHeader("Allow", strings.Join(allow, ", "))
}

// page serves the contract and its page; there is nothing else outside the bases.
func (d *Door) page(w http.ResponseWriter, r *http.Request) error {
	h, route := d.Docs.Find(r.URL.Path)
	if h == nil {
		return domain.ErrNotFound
	}
	obs.SetRoute(r.Context(), route)
	if r.Method != http.MethodGet {
		return missing([]string{http.MethodGet})
	}
	h.ServeHTTP(w, r)
	return nil
}

// operation runs the checks. Verdicts that are known early wait for their turn.
func (d *Door) operation(w http.ResponseWriter, r *http.Request, q *request) error {
	ctx := r.Context()
	if domain.HasQueryKey(r.URL.RawQuery) {
		return domain.ErrQueryKey
	}
	token, err := domain.Bearer(r.Header["Authorization"])
	if err != nil {
		return err //nolint:wrapcheck // the answer
	}
	credential, err := d.Gate.Principals.Find(ctx, token, q.address)
	if err != nil {
		return err //nolint:wrapcheck // the answer
	}
	obs.AddCaller(ctx, q.caller(credential))
	q.takeKey(r)
	look := ""
	if credential.Allows(q.op.Scopes) == nil {
		look = q.key
	}
	verdict, err := d.Gate.Admit(ctx, credential, look)
	if err != nil {
		return err //nolint:wrapcheck // the answer
	}
	announce(w.Header(), &verdict)
	if err := d.admitted(q, &verdict); err != nil {
		return err
	}
	defer func() { d.Gate.Bodies.Free(credential.Caller.Credential, q.held) }()
	if err := q.read(r, func(n int64) error { return d.hold(q, &verdict, n) }); err != nil {
		return err
	}
	if q.op.Stream {
		return d.stream(w, r, q, &verdict)
	}
	return d.answer(w, r, q, &verdict)
}

// admitted is the refusals of an authenticated request that need neither its body nor its key.
func (d *Door) admitted(q *request, v *app.Verdict) error {
	if !v.Passed {
		d.Gate.Metrics.Limited.Inc()
		return domain.ErrRate.WithHeader("Retry-After", strconv.FormatInt(max(1, v.Rate.RetryAfter), 10))
	}
	return v.Credential.Allows(q.op.Scopes) //nolint:wrapcheck // the answer
}

// hold counts n more bytes that the request keeps until it is answered: of its body, and first of all of the finished
// answer that waits beside it.
func (d *Door) hold(q *request, v *app.Verdict, n int64) error {
	if q.held == 0 {
		n += int64(len(v.Answer))
	}
	if err := d.Gate.Bodies.Take(v.Credential.Caller.Credential, n); err != nil {
		return err //nolint:wrapcheck // the answer
	}
	q.held += n
	return nil
}

// answer replays what is known, or asks the service.
func (d *Door) answer(w http.ResponseWriter, r *http.Request, q *request, v *app.Verdict) error {
	known, err := d.Gate.Replay(v.Answer, q.op.Service, q.fingerprint)
	if q.key != "" {
		d.Gate.Metrics.Replays.WithLabelValues(result(known, err)).Inc()
	}
	if err != nil {
		return err //nolint:wrapcheck // the answer
	}
	if known != nil {
		obs.Add(r.Context(), slog.String("idempotency", "redis"))
		write(w, known)
		return nil
	}
	a, err := d.Gate.Forward(r.Context(), q.op, q.call(r, v.Credential), q.fingerprint)
	if err != nil {
		return err //nolint:wrapcheck // the answer
	}
	write(w, &a)
	return nil
}

// stream passes on what goes on for minutes, with what a client says about where and how.
func (d *Door) stream(w http.ResponseWriter, r *http.Request, q *request, v *app.Verdict) error {
	call := q.call(r, v.Credential)
	call.Accept, call.LastEventID = r.Header.Get("Accept"), r.Header.Get("Last-Event-Id")
	return d.Gate.Stream(r.Context(), w, q.op, call) //nolint:wrapcheck // the answer
}

func result(known *domain.Answer, err error) string {
	switch {
	case err != nil:
		return "mismatch"
	case known != nil:
		return "hit"
	default:
		return "miss"
	}
}
