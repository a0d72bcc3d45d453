package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stripe is the Stripe stand-in of the platform as a payer's browser sees it, with the publishable key.
type stripe struct{ url, publishable string }

func (p *platform) stripe(t *testing.T) stripe {
	t.Helper()
	onMachine(t)
	return stripe{p.env["STRIPE_URL"], p.env["STRIPE_PUBLISHABLE_KEY"]}
}

// confirm pays an intent with a test payment method, like Stripe.js. If a response is lost, it confirms again. If that is refused
// because the intent is already confirmed, the first attempt succeeded.
func (s stripe) confirm(t *testing.T, i intent, method string) {
	t.Helper()
	form := url.Values{"key": {s.publishable}, "client_secret": {i.ClientSecret}, "payment_method": {method}}
	lost := false
	await(t, "the stand-in confirms "+i.ID, func() bool {
		res, err := httpClient.PostForm(s.url+"/v1/payment_intents/"+i.ID+"/confirm", form)
		if err != nil {
			lost = true // the stand-in is restarting, and might have confirmed
			return false
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusPaymentRequired {
			return true
		}
		text, _ := io.ReadAll(res.Body)
		if !lost || !bytes.Contains(text, []byte(`"payment_intent_unexpected_state"`)) {
			t.Fatalf("confirm %s: %d %s", i.ID, res.StatusCode, text)
		}
		return true
	})
}

// connectGateway connects the stand-in's test account to a tenant and sends its events to the platform.
func (p *platform) connectGateway(t *testing.T, tenant string) {
	t.Helper()
	s := p.stripe(t)
	p.connect(t, tenant, settingOf(t, p.path("services", "stripe.env"), "LOCAL_STRIPE_TEST_SECRET_KEY"), s.publishable)
}

// connect connects an account of the stand-in to a tenant and sends its events to the platform, at the URL that it returns.
func (p *platform) connect(t *testing.T, tenant, secret, publishable string) (webhooks, signing string) {
	t.Helper()
	var connected struct {
		WebhookPath string `json:"webhook_path"`
	}
	p.payments(t, secret, &connected, "gateway", "connect", "--tenant", tenant, "--publishable-key", publishable, "--secret-key-file", "/dev/stdin")
	base, err := url.Parse(p.env["BASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	base.Path = connected.WebhookPath
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.env["STRIPE_URL"]+"/v1/webhook_endpoints",
		strings.NewReader(url.Values{"url": {base.String()}, "enabled_events[]": {"*"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var endpoint struct{ Secret string }
	if err := json.NewDecoder(res.Body).Decode(&endpoint); err != nil || endpoint.Secret == "" {
		t.Fatalf("%d, %v", res.StatusCode, err)
	}
	p.payments(t, endpoint.Secret, nil, "gateway", "rotate", "--tenant", tenant, "--webhook-secret-file", "/dev/stdin")
	return base.String(), endpoint.Secret
}

// payments runs a command of payments with an input, with the service's settings or in its pod, and decodes its output.
func (p *platform) payments(t *testing.T, input string, out any, args ...string) {
	t.Helper()
	text, err := p.runPayments(t, input, args...)
	if err != nil {
		t.Fatalf("payments %v: %v", args, err)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatalf("payments %v: %v\n%s", args, err, text)
		}
	}
}

func (p *platform) runPayments(t *testing.T, input string, args ...string) ([]byte, error) {
	t.Helper()
	if p.cluster != nil {
		return p.cluster.Kubectl(t.Context(), []byte(input), append([]string{"exec", "-i", "deployment/holdfast-payments", "--", "/service"}, args...)...)
	}
	settings, err := os.ReadFile(p.path("services", "payments.env"))
	if err != nil {
		return nil, err
	}
	cmd := p.command("payments", args...)
	var complaint bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stderr = append(cmd.Env, strings.Fields(string(settings))...), strings.NewReader(input), &complaint
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, complaint.String())
	}
	return text, nil
}

// settingOf returns a value from a file of settings.
func settingOf(t *testing.T, file, name string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	t.Fatalf("%s has no %s", file, name)
	return ""
}

// intent contains the fields of a payment intent that the tests read.
type intent struct {
	ID            string `json:"id"`
	Status        string `json:"status"`
	ClientSecret  string `json:"client_secret"`
	Amount        int64  `json:"amount"`
	Received      int64  `json:"amount_received"`
	BookingStatus string `json:"booking_status"`
	Failure       *struct {
		Code string `json:"code"`
	} `json:"failure"`
}

// payable creates a booking of 1,000.00 by accepting a quote. A deposit of 200.00 is invoiced.
func payable(t *testing.T, c *client) chainQuote {
	t.Helper()
	unit := c.want(t, http.StatusCreated, http.MethodPost, "/units", `{"name":"Paid"}`).id(t)
	customer := c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Paula","email":"paula@example.com"}`).id(t)
	quote := newQuote(t, c, customer, "", unit, chainDay(rand.IntN(10_000)))
	var accepted chainQuote
	c.want(t, http.StatusOK, http.MethodPost, "/quotes/"+quote+"/accept", "").decode(t, &accepted)
	return accepted
}

// TestDepositIsPaidByCard checks that when the deposit of a booking is paid by card, the booking is confirmed, its invoice is
// paid, and each event arrives once. A declined card changes nothing except for an event.
func TestDepositIsPaidByCard(t *testing.T) {
	s, c := shared.stripe(t), shared.as(t, "DEMO_TEST_KEY")
	accepted := payable(t, c)
	var created intent
	c.insist(t, http.MethodPost, "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"invoice_id":%q}`, accepted.BookingID, accepted.InvoiceIDs[0]),
		unique("pay"), http.StatusCreated).decode(t, &created)
	if created.Amount != 20_000 || created.Status != "requires_payment_method" || created.ClientSecret == "" {
		t.Fatalf("%+v", created)
	}
	path := "/payment-intents/" + created.ID
	s.confirm(t, created, "pm_card_visa_chargeDeclined")
	await(t, "the failure is shown", func() bool { return read[intent](t, c, path).Failure != nil })
	if b := read[chainBooking](t, c, "/bookings/"+accepted.BookingID); b.Status != "pending" || b.Paid.Amount != 0 {
		t.Errorf("after a declined card: %+v", b)
	}
	s.confirm(t, created, "pm_card_visa")
	var booking chainBooking
	await(t, "the booking is confirmed", func() bool {
		booking = read[chainBooking](t, c, "/bookings/"+accepted.BookingID)
		return booking.Status == "confirmed"
	})
	if booking.Paid.Amount != 20_000 || booking.PaymentStatus != "deposit_paid" {
		t.Errorf("%+v", booking)
	}
	await(t, "the invoice is paid", func() bool {
		return read[chainInvoice](t, c, "/invoices/"+accepted.InvoiceIDs[0]).Status == "paid"
	})
	await(t, "the intent shows the booking", func() bool {
		got := read[intent](t, c, path)
		return got.Status == "succeeded" && got.Received == 20_000 && got.BookingStatus == "confirmed"
	})
	for object, want := range map[string]map[string]int{
		created.ID:             {"payment.succeeded": 1, "payment.failed": 1},
		accepted.InvoiceIDs[0]: {"invoice.created": 1, "invoice.paid": 1},
		accepted.BookingID:     {"booking.created": 1, "booking.updated": 1},
	} {
		got := map[string]int{}
		await(t, "the events of "+object, func() bool {
			clear(got)
			for _, e := range c.list(t, "/events?object_id="+object) {
				got[e["type"].(string)]++
			}
			return len(got) == len(want)
		})
		for kind, n := range want {
			if got[kind] != n {
				t.Errorf("%s: %v, want %v", object, got, want)
			}
		}
	}
	again := c.insist(t, http.MethodPost, "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"invoice_id":%q}`, accepted.BookingID, accepted.InvoiceIDs[0]),
		unique("pay"), http.StatusUnprocessableEntity)
	if !strings.Contains(string(again.Body), "invoice_id") {
		t.Errorf("a paid invoice: %s", again.Body)
	}
}

// TestTriggerPaysByCard checks that the command line also triggers events of payments: it pays with a test
// card, like a browser.
func TestTriggerPaysByCard(t *testing.T) {
	shared.stripe(t)
	c := shared.as(t, "DEMO_TEST_KEY")
	for _, kind := range []string{"payment.succeeded", "payment.failed"} {
		out, err := shared.holdfast("DEMO_TEST_KEY", "trigger", kind).CombinedOutput()
		id := regexp.MustCompile(`/v1/payment_intents/(pi_\w+)/confirm`).FindSubmatch(out)
		if err != nil || id == nil {
			t.Fatalf("trigger %s: %v %s", kind, err, out)
		}
		await(t, kind, func() bool { return len(c.list(t, fmt.Sprintf("/events?type=%s&object_id=%s", kind, id[1]))) == 1 })
	}
}

// TestPaymentsNeedAGateway checks that a tenant without a gateway account cannot accept payments, and that GET /tenant reports
// whether it has an account.
func TestPaymentsNeedAGateway(t *testing.T) {
	type tenant struct {
		Payments struct {
			Provider   *string `json:"provider"`
			Configured bool    `json:"configured"`
		} `json:"payments"`
	}
	demo, live, other := shared.as(t, "DEMO_TEST_KEY"), shared.as(t, "DEMO_LIVE_KEY"), shared.as(t, "OTHER_TEST_KEY")
	if shared.cluster == nil { // a cluster has no Stripe stand-in
		await(t, "demo has a gateway", func() bool {
			got := read[tenant](t, demo, "/tenant").Payments
			return got.Configured && got.Provider != nil && *got.Provider == "stripe"
		})
	}
	for name, c := range map[string]*client{"demo in live mode": live, "other": other} {
		if got := read[tenant](t, c, "/tenant").Payments; got.Configured || got.Provider != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	booking := other.want(t, http.StatusCreated, http.MethodPost, "/bookings",
		fmt.Sprintf(`{"event_date":%q,"event_start_time":"10:00","event_end_time":"11:00"}`, chainDay(rand.IntN(10_000)))).id(t)
	a := other.do(t, http.MethodPost, "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"amount_minor":1000}`, booking), unique("none"))
	if a.Status != http.StatusBadGateway || !strings.Contains(string(a.Body), "An owner connects one in the console") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := other.do(t, http.MethodGet, "/payment-intents/pi_x", "", ""); a.Status != http.StatusConflict || !strings.Contains(string(a.Body), "gateway_not_configured") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestChargedOnceUnderKills checks that the customer is charged once, regardless of which process crashes. It kills payments and
// the stand-in while clients create intents with a few keys each and pay them.
func TestChargedOnceUnderKills(t *testing.T) {
	s, c := shared.stripe(t), shared.as(t, "DEMO_TEST_KEY")
	rounds := 3
	if os.Getenv("TEST_SCALE") == "full" {
		rounds = 100
	}
	for round := range rounds {
		accepted := payable(t, c)
		key, body := unique("once"), fmt.Sprintf(`{"booking_id":%q,"amount_minor":20000}`, accepted.BookingID)
		var mu sync.Mutex
		seen := map[string]int{}
		var created intent
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				var got intent
				await(t, "the intent is created", func() bool {
					a, err := c.try(t, http.MethodPost, "/payment-intents", body, key)
					if err != nil || a.Status >= http.StatusInternalServerError || a.Status == http.StatusConflict {
						return false // a client tries again with its key
					}
					if a.Status != http.StatusCreated {
						t.Errorf("%d %s", a.Status, a.Body)
					}
					a.decode(t, &got)
					return true
				})
				mu.Lock()
				defer mu.Unlock()
				seen[got.ID]++
				created = got
			})
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		victim := []string{"payments", "stripe"}[round%2]
		if pid := shared.pid(victim); pid != 0 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
		clients.Wait()
		if len(seen) != 1 {
			t.Fatalf("round %d: intents %v", round, seen)
		}
		s.confirm(t, created, "pm_card_visa")
		await(t, "the booking is paid", func() bool {
			return read[chainBooking](t, c, "/bookings/"+accepted.BookingID).Paid.Amount == 20_000
		})
		if n := len(c.list(t, "/payment-intents?booking_id="+accepted.BookingID)); n != 1 {
			t.Errorf("round %d: %d intents of the booking", round, n)
		}
	}
}

// TestCurrencies checks that each currency passes creation, confirmation, capture, and refund in its smallest unit, as the gateway
// defines it.
func TestCurrencies(t *testing.T) {
	for currency, amount := range map[string]int64{"USD": 1234, "EUR": 1234, "JPY": 1234, "KWD": 12_340} {
		t.Run(currency, func(t *testing.T) {
			m := newMerchant(t, currency)
			booking := m.booking(t)
			part, back := amount/100*90, amount/100*50
			i := m.begin(t, booking, amount, `,"capture_method":"manual"`)
			m.pay(t, i)
			path := "/payment-intents/" + i.ID
			await(t, "it is authorised", func() bool { return read[intent](t, m.client, path).Status == "requires_capture" })
			m.want(t, http.StatusOK, http.MethodPost, path+"/capture", fmt.Sprintf(`{"amount_minor":%d}`, part))
			m.paid(t, booking, part)
			m.insist(t, http.MethodPost, "/refunds", fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":%d,"reason":"duplicate"}`, i.ID, back), unique("refund"), http.StatusCreated)
			await(t, "the refund shows", func() bool {
				return read[struct {
					Refunded int64 `json:"amount_refunded"`
				}](t, m.client, path).Refunded == back
			})
			h := m.holding(t)
			var returned []int64 // the gateway counts an authorized amount that was not captured as a refund
			for _, r := range h.Refunds {
				returned = append(returned, r.Amount)
			}
			slices.Sort(returned)
			if len(h.Intents) != 1 || h.Intents[0].Amount != amount || h.Intents[0].Received != part || !slices.Equal(returned, []int64{amount - part, back}) {
				t.Errorf("the stand-in holds %+v", h)
			}
			if got := read[chainBooking](t, m.client, "/bookings/"+booking).Paid.Currency; got != currency {
				t.Errorf("the booking has %s", got)
			}
		})
	}
}
