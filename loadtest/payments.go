package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// cardTenant is a tenant with a booking, and its own account at the simulation of Stripe.
type cardTenant struct {
	tenant
	booking        string
	secret, public string // keys of the account
}

// stripe sends a request with a form to the simulation of Stripe.
func stripe(path, form string, headers ...string) []byte {
	return load.Request(http.MethodPost, path, append(headers, formType), form)
}

// atStripe returns the address of the simulation.
func (b *bench) atStripe() string { return strings.TrimPrefix(b.platform.Env["STRIPE_URL"], "http://") }

// control calls the control API of the simulation.
func (f *figure) control(path, body string, out any) {
	token := f.settingsOf("stripe")["LOCAL_STRIPE_CONTROL_TOKEN"]
	f.decode(
		f.atStripe(), load.Request(http.MethodPost, "/_control/"+path, []string{"Authorization: Bearer " + token}, body), out,
	)
}

// cardTenants creates tenants with an account and a booking each.
func (f *figure) cardTenants(slug string, count int) []*cardTenant {
	f.say("%d tenants with an account each", count)
	all := make([]*cardTenant, count)
	for n := range all {
		all[n] = &cardTenant{tenant: f.newTenant(fmt.Sprintf("%s-%d", slug, n))}
		f.connect(all[n])
		all[n].booking = f.create(all[n].tenant, "/bookings", unpriced)
	}
	return all
}

// unpriced is a booking that accepts any payment.
const unpriced = `{"event_date":"2030-06-01"}`

// connect creates an account at the simulation, connects it to the tenant, and configures it to send its events to the
// platform.
func (f *figure) connect(t *cardTenant) {
	var account struct {
		Keys struct {
			Secret string `json:"test_secret"`
			Public string `json:"test_publishable"`
		}
	}
	f.control("accounts", "{}", &account)
	t.secret, t.public = account.Keys.Secret, account.Keys.Public
	var connected struct {
		Path   string   `json:"webhook_path"`
		Events []string `json:"webhook_events"`
	}
	of := []string{"--tenant", f.me(t.tenant).Tenant.String(), "--mode", "test"}
	output := f.gatewayCommand(
		"STRIPE_SECRET_KEY="+t.secret, append([]string{"connect", "--publishable-key", t.public}, of...)...,
	)
	f.check(json.Unmarshal(output, &connected))
	form := url.Values{"url": {"http://" + t.addr + connected.Path}, "enabled_events[]": connected.Events}.Encode()
	var endpoint struct{ Secret string }
	f.decode(f.atStripe(), stripe("/v1/webhook_endpoints", form, "Authorization: Bearer "+t.secret), &endpoint)
	f.gatewayCommand("STRIPE_WEBHOOK_SECRET="+endpoint.Secret, append([]string{"rotate"}, of...)...)
}

// gatewayCommand runs `payments gateway` with the service's settings and a secret, and returns its output.
func (f *figure) gatewayCommand(secret string, args ...string) []byte {
	cmd := exec.CommandContext(
		f.ctx, filepath.Join(f.platform.Dir, "bin", "payments"), append([]string{"gateway"}, args...)...,
	)
	cmd.Dir, cmd.Env = f.platform.Dir, append(os.Environ(), secret)
	for key, value := range f.settingsOf("payments") {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	var failed bytes.Buffer
	cmd.Stderr = &failed
	text, err := cmd.Output()
	if err != nil {
		f.check(fmt.Errorf("payments gateway: %w: %s", err, failed.String()))
	}
	return text
}

func intentOf(booking string) string {
	return fmt.Sprintf(`{"booking_id":%q,"amount_minor":2500,"currency":"USD"}`, booking)
}

// intents compares the creation of payment intents with the simulation of Stripe alone, which responds after 300 ms. It
// has as many parallel calls as payments may have for these accounts. The platform has more requests: some are before
// their call, and some after it.
func (f *figure) intents() {
	all := f.cardTenants("intents", 51)
	const latency = "300ms"
	f.control("latency", fmt.Sprintf(`{"latency":%q}`, latency), &struct{}{})
	defer f.control("latency", `{"latency":"0s"}`, &struct{}{})
	form := url.Values{
		"amount": {"2500"}, "currency": {"usd"}, "capture_method": {"automatic"},
		"automatic_payment_methods[enabled]": {"true"},
		"metadata[holdfast_payment]":         {"pmt_bench"}, "metadata[booking_id]": {"bk_bench"},
	}.Encode()
	for _, part := range []struct {
		name              string
		tenants           []*cardTenant
		clients, inFlight int
	}{{"one tenant", all[:1], 96, 64}, {"50 tenants", all[1:], 192, 128}} {
		ours := &side{name: "`POST /payment-intents`, " + part.name, pace: load.Pace{Conns: part.clients}}
		ours.target = load.Target{
			Addr: all[0].addr, Nth: func(n int) []byte {
				t := part.tenants[n%len(part.tenants)]
				return t.request(http.MethodPost, "/payment-intents", fmt.Sprintf("%s-%d", part.name, n), intentOf(t.booking))
			},
		}
		alone := &side{name: "the stand-in, " + part.name, pace: load.Pace{Conns: part.inFlight}, timed: true}
		alone.target = load.Target{
			Addr: f.atStripe(), Nth: func(n int) []byte {
				return stripe("/v1/payment_intents", form, "Authorization: Bearer "+part.tenants[n%len(part.tenants)].secret,
					fmt.Sprintf("Idempotency-Key: alone-%s-%d", part.name, n))
			},
		}
		f.alternate(ours, alone)
		title := fmt.Sprintf("%s, %d at once, Stripe responds after %s", ours.name, part.clients, latency)
		than := fmt.Sprintf("the stand-in alone, %d at once", part.inFlight)
		f.addRate(title, ours, than, alone.Rate(), report.Target{LeastRatio: 0.9})
		f.noteCPU(ours)
	}
}

// paidEvents are the events that follow a payment.
var paidEvents = []string{"payment.succeeded", "booking.updated"}

// paid measures how long after a confirmation with a card the events of the payment and of its booking are delivered:
// at a rate that two cores sustain, and at the target rate.
func (f *figure) paid() {
	for i, rate := range []int{25, 100} {
		tenants := f.cardTenants(fmt.Sprintf("paid-%d", rate), 20)
		list := f.unpaid(tenants, rate*f.Seconds)
		sinks := map[string]*load.Sink{}
		for _, event := range paidEvents {
			sinks[event] = f.listen(list.began(event))
			defer sinks[event].Close()
			for _, t := range tenants {
				f.addEndpoint(t.tenant, sinks[event].URL, event)
			}
		}
		ours := &side{
			name: fmt.Sprintf("%d payments/s by card", rate), pace: load.Pace{Conns: openConnections, Rate: rate},
			target: load.Target{Addr: f.atStripe(), Nth: list.confirm},
		}
		samples := map[string]load.Sample{}
		ours.used = f.account(func() {
			start := time.Now()
			ours.Sample = f.send(ours, time.Duration(f.Seconds)*time.Second)
			for event, sink := range sinks {
				samples[event] = f.await(sink, start, len(list.intents))
			}
		})
		for _, event := range paidEvents {
			f.addTail(
				fmt.Sprintf("%s, from the confirmation at Stripe to the delivery of `%s`:", ours.name, event), samples[event],
			)
		}
		f.addCPU(ours.name, ours, []float64{0, 10}[i])
	}
}

// unpaid holds payment intents of one booking each, which wait for a card.
type unpaid struct {
	intents  []struct{ id, secret, key string }
	bookings map[string]int // number of the intent of each booking
	sent     []atomic.Int64 // time of each confirmation, in nanoseconds
}

// unpaid creates n bookings of the tenants in turn, each with an intent.
func (f *figure) unpaid(tenants []*cardTenant, n int) *unpaid {
	out := &unpaid{bookings: map[string]int{}, sent: make([]atomic.Int64, n)}
	for i := range n {
		t := tenants[i%len(tenants)]
		booking := f.create(t.tenant, "/bookings", unpriced)
		var created struct {
			ID     string
			Secret string `json:"client_secret"`
		}
		f.call(t.tenant, http.MethodPost, "/payment-intents", intentOf(booking), &created)
		out.intents = append(out.intents, struct{ id, secret, key string }{created.ID, created.Secret, t.public})
		out.bookings[booking] = i
	}
	return out
}

// confirm returns the n-th confirmation, as a browser sends it.
func (u *unpaid) confirm(n int) []byte {
	one := u.intents[n]
	form := url.Values{"key": {one.key}, "client_secret": {one.secret}, "payment_method": {"pm_card_visa"}}.Encode()
	u.sent[n].Store(time.Now().UnixNano())
	return stripe("/v1/payment_intents/"+one.id+"/confirm", form)
}

// began returns the time of the confirmation that an event follows, once for each booking.
func (u *unpaid) began(event string) func(body []byte) (time.Time, bool) {
	var seen sync.Map
	return func(body []byte) (time.Time, bool) {
		var e struct {
			Type string
			Data struct {
				Object struct {
					ID      string
					Booking string `json:"booking_id"`
				}
			}
		}
		if json.Unmarshal(body, &e) != nil || e.Type != event {
			return time.Time{}, false
		}
		n, ok := u.bookings[e.Data.Object.Booking]
		if !ok {
			n, ok = u.bookings[e.Data.Object.ID]
		}
		if !ok {
			return time.Time{}, false
		}
		_, repeated := seen.LoadOrStore(n, true)
		return time.Unix(0, u.sent[n].Load()), !repeated
	}
}
