package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

const (
	gatewayLatency = "300ms" // of each response of the simulated Stripe
	cardTenants    = 50      // compared with one tenant
	oneInFlight    = 64      // parallel calls of one account at the simulated Stripe, which is the limit in payments
	manyInFlight   = 128     // parallel calls of all accounts
	oneClients     = 96      // parallel requests of one tenant to the platform: some are before their call, and some after it
	manyClients    = 192     // parallel requests of all tenants
	paidTenants    = 20      // number of tenants whose payments are measured at one rate
)

// paidPerSecond are the rates of card payments at which the time from payment to booking is measured: one that two cores sustain,
// and the target rate.
var paidPerSecond = []int{25, 100}

// paidEvents are the events that follow a payment.
var paidEvents = []string{"payment.succeeded", "booking.updated"}

// errGateway reports that the simulated Stripe did not do what was requested.
var errGateway = errors.New("the stand-in for Stripe")

// standIn is the platform's simulation of Stripe.
type standIn struct {
	url   string
	token string // for its control API
	env   []string
}

// cardTenant is a tenant with a booking, and its own account at the simulated Stripe.
type cardTenant struct {
	shop
	booking string
	secret  string // key at the simulated Stripe
	public  string
}

// payments measures the creation of payment intents compared with the simulated Stripe alone, and the time from a payment to its
// booking.
func (b *bench) payments(ctx context.Context) error {
	settings, err := b.platform.Settings("payments")
	if err != nil {
		return err
	}
	stripe, err := b.platform.Settings("stripe")
	if err != nil {
		return err
	}
	s := &standIn{url: b.platform.Env["STRIPE_URL"], token: stripe["LOCAL_STRIPE_CONTROL_TOKEN"], env: os.Environ()}
	for key, value := range settings {
		s.env = append(s.env, key+"="+value)
	}
	b.say("%d tenants with an account each", 1+cardTenants)
	all := make([]*cardTenant, 1+cardTenants)
	for n := range all {
		if all[n], err = b.cardTenant(ctx, s, n); err != nil {
			return err
		}
	}
	if b.wants("intents") {
		b.try(ctx, "intents", "payment intents", func() error { return b.intents(ctx, s, all) })
	}
	if b.wants("paid") {
		b.try(ctx, "paid", "from a payment to its booking", func() error {
			for i, rate := range paidPerSecond {
				if err := b.paid(ctx, s, all[i*paidTenants:(i+1)*paidTenants], rate); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return nil
}

// intents compares the creation of payment intents with the simulated Stripe alone, for the same number of connections.
func (b *bench) intents(ctx context.Context, s *standIn, all []*cardTenant) error {
	if err := s.control(ctx, "latency", map[string]string{"latency": gatewayLatency}, nil); err != nil {
		return err
	}
	defer func() { _ = s.control(context.WithoutCancel(ctx), "latency", map[string]string{"latency": "0s"}, nil) }()
	for _, part := range []struct {
		name              string
		tenants           []*cardTenant
		clients, inFlight int
	}{
		{"one tenant", all[:1], oneClients, oneInFlight},
		{fmt.Sprintf("%d tenants", cardTenants), all[1:], manyClients, manyInFlight},
	} {
		ours := &served{name: "POST /payment-intents, " + part.name, target: part.tenants[0].intentTarget(part.name, part.tenants)}
		alone := &served{name: "the stand-in, " + part.name, target: s.intentTarget(part.name, part.tenants)}
		if err := runRounds(b.serveWith(ctx, ours, part.clients), b.serveWith(ctx, alone, part.inFlight)); err != nil {
			return err
		}
		ratio := report.Ratio(ours.Rate(), alone.Rate())
		b.table.Add(report.Row{
			Figure: fmt.Sprintf("`POST /payment-intents` with Idempotency-Key, %s, %d at once, Stripe responds after %s", part.name, part.clients, gatewayLatency),
			Value:  report.PerSecond(ours.Rate()), Baseline: fmt.Sprintf("the stand-in alone, %d at once: %.0f/s", part.inFlight, alone.Rate()), Ratio: ratio, Show: "intents",
			Aim: report.Aim{Text: "≥ 90 %", Value: ratio, Least: 0.9},
		})
		b.table.Note("%s, CPU µs per intent: %s", ours.name, ours.used.per(float64(ours.Requests)))
	}
	return nil
}

// intentTarget returns the platform as a target, with the n-th creation of the tenants in turn.
func (t *cardTenant) intentTarget(run string, tenants []*cardTenant) load.Target {
	return load.Target{Addr: t.addr, Status: http.StatusCreated, Nth: func(n int) []byte {
		one := tenants[n%len(tenants)]
		return load.Request(http.MethodPost, "/api/v1/payment-intents", one.headers(one.key, fmt.Sprintf("%s-%d", run, n)), intentOf(one.booking))
	}}
}

func intentOf(booking string) string {
	return fmt.Sprintf(`{"booking_id":%q,"amount_minor":2500,"currency":"USD"}`, booking)
}

// intentTarget returns the simulated Stripe as a target, with the request that payments sends for the n-th creation.
func (s *standIn) intentTarget(run string, tenants []*cardTenant) load.Target {
	form := url.Values{
		"amount": {"2500"}, "currency": {"usd"}, "capture_method": {"automatic"}, "automatic_payment_methods[enabled]": {"true"},
		"metadata[holdfast_payment]": {"pmt_bench"}, "metadata[booking_id]": {"bk_bench"},
	}.Encode()
	return load.Target{Addr: strings.TrimPrefix(s.url, "http://"), Status: http.StatusOK, Nth: func(n int) []byte {
		return formRequest("/v1/payment_intents", form, "Authorization: Bearer "+tenants[n%len(tenants)].secret,
			fmt.Sprintf("Idempotency-Key: alone-%s-%d", run, n))
	}}
}

// formRequest returns one HTTP/1.1 POST of a form.
func formRequest(path, form string, headers ...string) []byte {
	headers = append(headers, "Content-Type: application/x-www-form-urlencoded", fmt.Sprintf("Content-Length: %d", len(form)))
	return append(load.Request(http.MethodPost, path, headers, ""), form...)
}

// paid measures how long after a confirmation with a card the events of the payment and of its booking are delivered.
func (b *bench) paid(ctx context.Context, s *standIn, tenants []*cardTenant, perSecond int) error {
	total := perSecond * b.Seconds
	run := fmt.Sprintf("paid-%d", perSecond)
	list, err := s.unpaid(ctx, run, tenants, total)
	if err != nil {
		return err
	}
	sinks := map[string]*load.Sink{}
	for _, event := range paidEvents {
		sink, err := load.Listen(ctx)
		if err != nil {
			return err
		}
		defer sink.Close()
		sink.Began = list.began(event)
		sinks[event] = sink
		for n, t := range tenants {
			body := fmt.Sprintf(`{"url":%q,"event_types":[%q],"max_in_flight":100,"max_per_second":5000}`, sink.URL, event)
			if err := t.post(ctx, "/webhook-endpoints", fmt.Sprintf("%s-%s-%d", run, event, n), body, &struct{}{}); err != nil {
				return err
			}
		}
	}
	var used usage
	samples := map[string]load.Sample{}
	err = b.account(ctx, &used, func() error {
		start := time.Now()
		confirm := load.Target{Addr: strings.TrimPrefix(s.url, "http://"), Status: http.StatusOK, Nth: list.confirm}
		if _, err := load.Open(ctx, confirm, load.Schedule{Rate: perSecond}, time.Duration(b.Seconds)*time.Second); err != nil {
			return err
		}
		for event, sink := range sinks {
			if samples[event], err = sink.Await(ctx, start, total, time.Minute); err != nil {
				return fmt.Errorf("%s: %w", event, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.addPaid(perSecond, samples)
	if perSecond == paidPerSecond[len(paidPerSecond)-1] {
		all := perRequest(used.platform(), total)
		b.table.Add(report.Row{
			Figure: fmt.Sprintf("%d payments/s by card: CPU time of all processes per payment", perSecond), Value: all, Aim: report.AtMost(all, 10), Show: "paid",
		})
	}
	b.table.Note("payments by card at %d/s, CPU µs per payment: %s", perSecond, used.per(float64(total)))
	return nil
}

// addPaid adds the times from the confirmation to the delivery of each event.
func (b *bench) addPaid(perSecond int, samples map[string]load.Sample) {
	for _, event := range paidEvents {
		sample := samples[event]
		p50, p99 := sample.Percentile(50), sample.Percentile(99)
		b.say("paid at %d/s: %s delivered after p50 %s, p99 %s", perSecond, event, report.Millis(p50), report.Millis(p99))
		b.table.Add(report.Row{
			Figure: fmt.Sprintf("%d payments/s by card, from the confirmation at Stripe to the delivery of `%s`: p50 / p99", perSecond, event),
			Value:  report.Milliseconds(p99),
			Ours:   report.Millis(p50) + " / " + report.Millis(p99), Show: "paid",
			Aim: report.Aim{Text: "p99 < 1000 ms", Value: millis(p99), AtMost: 1000},
		})
	}
}

// reconcilerRate matches the result in the output of the reconciler's benchmark.
var reconcilerRate = regexp.MustCompile(`([0-9.]+) intents/s`)

// reconciler runs payments' own benchmark: an account of 100,000 intents that are identical on both sides, and a gateway that
// lists them as fast as possible.
func (b *bench) reconciler(ctx context.Context) error {
	checkout, err := os.Getwd()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(checkout, "bin", "local"), "with", "--kafka", "none", "--",
		"go", "test", "-run", "^$", "-bench", "Reconciler", "-benchtime", "3x", "./internal/api")
	cmd.Dir = filepath.Join(checkout, "services", "payments")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("benchmark of the reconciler: %w: %s", err, out)
	}
	found := reconcilerRate.FindSubmatch(out)
	if found == nil {
		return fmt.Errorf("benchmark of the reconciler: %s", out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return err
	}
	b.say("the reconciler compares %.0f intents/s", rate)
	b.table.Add(report.Row{
		Figure: "the hourly comparison with Stripe over 100,000 intents of one account, 100 a page", Value: report.Quantity{Value: rate, Unit: "intents/s"}, Show: "reconciler",
	})
	return nil
}

// unpaid holds bookings with one payment intent each, which wait for a card.
type unpaid struct {
	intents, secrets, keys []string // by number
	numbers                map[string]int
	sent                   []atomic.Int64 // by number: time of the confirmation, in nanoseconds
}

// unpaid creates n bookings of the tenants in turn, each with an intent.
func (s *standIn) unpaid(ctx context.Context, run string, tenants []*cardTenant, n int) (*unpaid, error) {
	out := &unpaid{
		intents: make([]string, n), secrets: make([]string, n), keys: make([]string, n), numbers: map[string]int{}, sent: make([]atomic.Int64, n),
	}
	for i := range n {
		t := tenants[i%len(tenants)]
		booking, err := t.unpriced(ctx, fmt.Sprintf("%s-%d", run, i))
		if err != nil {
			return nil, err
		}
		var created struct {
			ID     string `json:"id"`
			Secret string `json:"client_secret"`
		}
		if err := t.post(ctx, "/payment-intents", fmt.Sprintf("%s-intent-%d", run, i), intentOf(booking), &created); err != nil {
			return nil, err
		}
		out.intents[i], out.secrets[i], out.keys[i], out.numbers[booking] = created.ID, created.Secret, t.public, i
	}
	return out, nil
}

// confirm returns the n-th confirmation, as a browser sends it.
func (u *unpaid) confirm(n int) []byte {
	form := url.Values{"key": {u.keys[n]}, "client_secret": {u.secrets[n]}, "payment_method": {"pm_card_visa"}}.Encode()
	u.sent[n].Store(time.Now().UnixNano())
	return formRequest("/v1/payment_intents/"+u.intents[n]+"/confirm", form)
}

// began returns the time of the confirmation that an event follows, once for each booking.
func (u *unpaid) began(event string) func(body []byte) (time.Time, bool) {
	var mu sync.Mutex
	seen := map[int]bool{}
	return func(body []byte) (time.Time, bool) {
		var e struct {
			Type string `json:"type"`
			Data struct {
				Object struct {
					ID      string `json:"id"`
					Booking string `json:"booking_id"`
				} `json:"object"`
			} `json:"data"`
		}
		if json.Unmarshal(body, &e) != nil || e.Type != event {
			return time.Time{}, false
		}
		n, ok := u.numbers[e.Data.Object.Booking]
		if !ok {
			n, ok = u.numbers[e.Data.Object.ID]
		}
		mu.Lock()
		defer mu.Unlock()
		if !ok || seen[n] {
			return time.Time{}, false
		}
		seen[n] = true
		return time.Unix(0, u.sent[n].Load()), true
	}
}

// cardTenant creates a tenant with an account and a booking.
func (b *bench) cardTenant(ctx context.Context, s *standIn, n int) (*cardTenant, error) {
	slug := fmt.Sprintf("cards-%d", n)
	key, err := b.tenant(ctx, slug)
	if err != nil {
		return nil, err
	}
	base, _, _ := strings.Cut(strings.TrimPrefix(b.platform.Env["BASE_URL"], "http://"), "/")
	t := &cardTenant{shop: shop{addr: base, key: key}}
	var me struct {
		Tenant string `json:"tenant_id"`
	}
	if err := t.get(ctx, "/me", &me); err != nil {
		return nil, err
	}
	if err := b.connect(ctx, s, t, "--tenant", me.Tenant, "--mode", "test"); err != nil {
		return nil, err
	}
	t.booking, err = t.unpriced(ctx, slug)
	return t, err
}

// connect creates an account at the simulated Stripe, connects it to the tenant, and configures it to send its events to the
// platform.
func (b *bench) connect(ctx context.Context, s *standIn, t *cardTenant, of ...string) error {
	var account struct {
		Keys struct {
			Secret string `json:"test_secret"`
			Public string `json:"test_publishable"`
		} `json:"keys"`
	}
	if err := s.control(ctx, "accounts", struct{}{}, &account); err != nil {
		return err
	}
	t.secret, t.public = account.Keys.Secret, account.Keys.Public
	var connected struct {
		Path   string   `json:"webhook_path"`
		Events []string `json:"webhook_events"`
	}
	connect := append([]string{"connect", "--publishable-key", t.public}, of...)
	err := b.gatewayCommand(ctx, s, "STRIPE_SECRET_KEY="+t.secret, &connected, connect...)
	if err != nil {
		return err
	}
	var endpoint struct {
		Secret string `json:"secret"`
	}
	form := url.Values{"url": {"http://" + t.addr + connected.Path}, "enabled_events[]": connected.Events}.Encode()
	raw := formRequest("/v1/webhook_endpoints", form, "Authorization: Bearer "+t.secret)
	body, err := load.Once(ctx, load.Target{
		Addr: strings.TrimPrefix(s.url, "http://"), Status: http.StatusOK, Nth: func(int) []byte { return raw },
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, &endpoint); err != nil {
		return err
	}
	return b.gatewayCommand(ctx, s, "STRIPE_WEBHOOK_SECRET="+endpoint.Secret, nil, append([]string{"rotate"}, of...)...)
}

// unpriced creates a booking that accepts any payment.
func (t *cardTenant) unpriced(ctx context.Context, key string) (id string, err error) {
	var created struct {
		ID string `json:"id"`
	}
	err = t.post(ctx, "/bookings", key, `{"event_date":"2030-06-01"}`, &created)
	return created.ID, err
}

// gatewayCommand runs `payments gateway` with the service's settings and a secret, and reads its output.
func (b *bench) gatewayCommand(ctx context.Context, s *standIn, secret string, out any, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.platform.Dir, "bin", "payments"), append([]string{"gateway"}, args...)...)
	cmd.Dir, cmd.Env = b.platform.Dir, append(s.env[:len(s.env):len(s.env)], secret)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("payments gateway %s: %w: %s", args[0], err, failed.String())
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// control calls the control API of the simulated Stripe.
func (s *standIn) control(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/_control/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w returned %s to %s: %s", errGateway, res.Status, path, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
