package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/peers/public"
	"holdfast.dev/services/webhooks/internal/peers/public/publictest"
)

const ownSecret = "whsec_dGhpcyBpcyBhIHNlY3JldCBvZiB0aGUgdGVzdHM="

// mailbox is a receiver that stores its requests.
type mailbox struct {
	url     string
	respond func(w http.ResponseWriter, r *http.Request)

	mu  sync.Mutex
	got []posted
}

type posted struct {
	header http.Header
	body   string
	method string
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	b := &mailbox{respond: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.got = append(b.got, posted{r.Header, string(body), r.Method})
		b.mu.Unlock()
		b.respond(w, r)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL + "/hooks?of=test"
	return b
}

func (b *mailbox) all() []posted {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// listening is a running listen command.
type listening struct {
	t        *testing.T
	out, err *screen
	stop     context.CancelFunc
	end      chan error
}

// listen starts the command and waits until it reads.
func listen(t *testing.T, p *publictest.Platform, args ...string) *listening {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &listening{t, &screen{}, &screen{}, stop, make(chan error, 1)}
	args = append(args, "--base-url", p.URL, "--key", publictest.Key)
	go func() { l.end <- executeOn(ctx, listenCommand(), "", l.out, l.err, args...) }()
	l.out.shows(t, "listening for events of test mode")
	return l
}

func (l *listening) ends() {
	l.t.Helper()
	l.stop()
	select {
	case err := <-l.end:
		if err != nil {
			l.t.Error(err)
		}
	case <-time.After(time.Minute):
		l.t.Fatal("listen does not end")
	}
}

func TestListenForwardsAsADelivery(t *testing.T) {
	t.Parallel()
	p, b := publictest.New(t), newMailbox(t)
	l := listen(t, p, "--forward-to", b.url)
	id := p.Add("booking.created")
	line := l.out.shows(t, "booking.created", id)
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  booking.created    ` + id + `  204  \d+ ms\n$`).MatchString(line) {
		t.Errorf("shown as %q", line)
	}
	secret := regexp.MustCompile(`whsec_\S+`).FindString(l.out.String())
	l.ends()
	got := b.all()
	if len(got) != 1 || got[0].method != http.MethodPost || got[0].body != p.Bodies()[0] {
		t.Fatalf("received %+v", got)
	}
	h := got[0].header
	for name, form := range map[string]string{
		"Content-Type": `^application/json$`, "Service-Event-Id": "^" + id + "$", "Service-Event-Type": `^booking\.created$`,
		"Service-Delivery-Id": `^whd_[0-9a-z]{26}$`, "Service-Delivery-Attempt": `^1$`, "Webhook-Id": "^" + id + "$",
		"Webhook-Timestamp": `^\d{10}$`, "Webhook-Signature": `^v1,[0-9A-Za-z+/]{43}=$`, "Service-Signature": `^t=\d{10},v1=[0-9a-f]{64}$`,
	} {
		if v := h.Get(name); !regexp.MustCompile(form).MatchString(v) {
			t.Errorf("%s is %q", name, v)
		}
	}
	if err := domain.Verify(h.Get("Service-Signature"), []byte(got[0].body), secret, time.Now()); err != nil {
		t.Errorf("with %s: %v", secret, err)
	}
	unix, _ := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	if want := domain.SignStandard(id, []byte(got[0].body), time.Unix(unix, 0), secret); h.Get("Webhook-Signature") != want {
		t.Errorf("webhook-signature is %s, want %s", h.Get("Webhook-Signature"), want)
	}
}

func TestListenSignsWithAGivenSecret(t *testing.T) {
	t.Parallel()
	p, b := publictest.New(t), newMailbox(t)
	l := listen(t, p, "--forward-to", strings.TrimPrefix(b.url, "http://"), "--secret", ownSecret)
	l.out.shows(t, p.Add("customer.created"), "204")
	l.ends()
	got := b.all()[0]
	if err := domain.Verify(got.header.Get("Service-Signature"), []byte(got.body), ownSecret, time.Now()); err != nil {
		t.Error(err)
	}
}

// The stream ends in the middle of the second event. The receiver gets each event once, in order.
func TestListenResumes(t *testing.T) {
	t.Parallel()
	p, b := publictest.New(t, publictest.Stream{Cut: 250}), newMailbox(t)
	l := listen(t, p, "--forward-to", b.url, "--events", "booking.created,booking.updated")
	var want []string
	for range 3 {
		want = append(want, p.Add("booking.updated"))
		p.Add("customer.updated") // not requested
	}
	for _, id := range want {
		l.out.shows(t, id, "204")
	}
	l.err.shows(t, "the stream was cut off", "; again in 1s")
	l.ends()
	var got []string
	for _, d := range b.all() {
		got = append(got, d.header.Get("Service-Event-Id"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

func TestListenShowsFailuresAndGoesOn(t *testing.T) {
	t.Parallel()
	p, b := publictest.New(t), newMailbox(t)
	elsewhere := newMailbox(t)
	responses := []func(w http.ResponseWriter, r *http.Request){
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.url, http.StatusTemporaryRedirect)
		},
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
	}
	b.respond = func(w http.ResponseWriter, r *http.Request) { responses[len(b.all())-1](w, r) }
	l := listen(t, p, "--forward-to", b.url)
	for _, part := range []string{"  500  ", "  307  ", "  failed: EOF  ", "  200  "} {
		l.out.shows(t, p.Add("booking.created"), part)
	}
	l.ends()
	if got := len(elsewhere.all()); got > 0 || len(b.all()) != 4 {
		t.Errorf("the redirect was followed %d times, and %d attempts were made", got, len(b.all()))
	}
}

func TestListenWithoutAReceiver(t *testing.T) {
	t.Parallel()
	p := publictest.New(t)
	l := listen(t, p)
	for _, kind := range []string{"booking.created", "customer.updated"} {
		l.out.shows(t, kind, p.Add(kind)+"\n")
	}
	l.ends()
	if strings.Contains(l.out.String(), "whsec_") {
		t.Errorf("a secret that signs nothing:\n%s", l.out)
	}
}

func TestListenRefuses(t *testing.T) {
	t.Parallel()
	p := publictest.New(t)
	for message, args := range map[string][]string{
		"live mode keys are not allowed":   {"--key", "svc_live_abc"},
		"the types are booking.created,":   {"--events", "booking.created,booking.made"},
		"--secret must be whsec_ followed": {"--forward-to", "http://127.0.0.1:1", "--secret", "whsec_"},
		"--secret must be whsec_":          {"--forward-to", "http://127.0.0.1:1", "--secret", "whsec_#"},
		"--secret must be":                 {"--forward-to", "http://127.0.0.1:1", "--secret", "dGhpcw=="},
		"--forward-to must be":             {"--forward-to", "ftp://127.0.0.1:1"},
		"The API key is not valid.":        {"--key", "svc_test_other"},
	} {
		fails(t, listenCommand(), message, append([]string{"--base-url", p.URL, "--key", publictest.Key}, args...)...)
	}
}

// An attempt to a receiver that does not respond ends after responseTimeout, which the test shortens.
func TestListenTimesOutWithoutAResponse(t *testing.T) {
	t.Parallel()
	b := newMailbox(t)
	release := make(chan struct{})
	defer close(release)
	b.respond = func(http.ResponseWriter, *http.Request) { <-release }
	r := newReceiver(b.url, ownSecret)
	if r.http.Timeout != 10*time.Second {
		t.Errorf("it waits %v", r.http.Timeout)
	}
	r.http.Timeout = 50 * time.Millisecond
	_, took, err := r.deliver(t.Context(), public.Event{ID: "evt_1", Type: "booking.created", Body: []byte(`{}`)})
	if err == nil || err.Error() != "no response within 10s" || took < 50*time.Millisecond {
		t.Errorf("%v after %v", err, took)
	}
}
