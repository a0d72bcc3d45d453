package e2e

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// merchant is a tenant with its own account at the stand-in.
type merchant struct {
	*client
	stripe

	slug, tenant, currency, account, secret, signing, webhooks string
}

// control calls the stand-in's control API.
func (s stripe) control(t *testing.T, method, path string, body, out any) {
	t.Helper()
	if status, got := s.tryControl(t, method, path, body); status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, got)
	} else if out != nil {
		if err := json.Unmarshal(got, out); err != nil {
			t.Fatal(err)
		}
	}
}

// tryControl calls the stand-in's control API, which can refuse the request.
func (s stripe) tryControl(t *testing.T, method, path string, body any) (status int, got []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, s.url+"/_control/"+path, bytes.NewReader(text)) //nolint:noctx // also called when the test has ended
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+settingOf(t, shared.path("services", "stripe.env"), "LOCAL_STRIPE_CONTROL_TOKEN"))
	res, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if got, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, got
}

func newMerchant(t *testing.T, currency string) merchant {
	t.Helper()
	m := merchant{stripe: shared.stripe(t), currency: currency}
	var account struct {
		ID   string `json:"id"`
		Keys struct {
			Secret      string `json:"test_secret"`
			Publishable string `json:"test_publishable"`
		} `json:"keys"`
	}
	m.control(t, http.MethodPost, "accounts", map[string]string{"country": "US", "default_currency": strings.ToLower(currency)}, &account)
	slug := strings.ReplaceAll(unique("merchant"), "-", "")
	var tenant, key struct{ ID, Secret string }
	shared.identity(t, &tenant, "tenant", "create", "--slug", slug, "--name", "Merchant", "--timezone", "UTC", "--currency", currency, "--json")
	shared.identity(t, &key, "key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json")
	m.client, m.slug, m.tenant, m.account, m.secret, m.publishable = shared.with(t, key.Secret), slug, tenant.ID, account.ID, account.Keys.Secret, account.Keys.Publishable
	m.webhooks, m.signing = shared.connect(t, tenant.ID, m.secret, m.publishable)
	return m
}

// booking creates a booking without a price.
func (m merchant) booking(t *testing.T) string {
	t.Helper()
	return m.insist(t, http.MethodPost, "/bookings", fmt.Sprintf(`{"event_date":%q}`, chainDay(rand.IntN(10_000))), unique("booking"), http.StatusCreated).id(t)
}

// begin creates an intent, and repeats the request with its key until it is created.
func (m merchant) begin(t *testing.T, booking string, amount int64, more string) (created intent) {
	t.Helper()
	m.beginWith(t, booking, amount, more, unique("pay"), &created)
	return created
}

func (m merchant) beginWith(t *testing.T, booking string, amount int64, more, key string, created *intent) {
	t.Helper()
	body := fmt.Sprintf(`{"booking_id":%q,"amount_minor":%d%s}`, booking, amount, more)
	await(t, "the intent is created", func() bool {
		a, err := m.try(t, http.MethodPost, "/payment-intents", body, key)
		if err != nil || a.Status >= http.StatusInternalServerError || a.Status == http.StatusConflict {
			return false // a client tries again with its key
		}
		if a.Status != http.StatusCreated {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		a.decode(t, created)
		return true
	})
}

// tryConfirm pays once, like Stripe.js. The status is 0 if the response is lost.
func (s stripe) tryConfirm(i intent, method string) (status int, body string) {
	form := url.Values{"key": {s.publishable}, "client_secret": {i.ClientSecret}, "payment_method": {method}}
	res, err := httpClient.PostForm(s.url+"/v1/payment_intents/"+i.ID+"/confirm", form)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(text)
}

// pay confirms an intent until it has definitely succeeded, even if responses are lost.
func (s stripe) pay(t *testing.T, i intent) {
	t.Helper()
	await(t, i.ID+" is paid", func() bool {
		status, body := s.tryConfirm(i, "pm_card_visa")
		if status != 0 && status != http.StatusOK && !strings.Contains(body, "unexpected_state") {
			t.Errorf("confirm %s: %d %s", i.ID, status, body)
		}
		return status != 0
	})
}

// holding contains the objects of an account at the stand-in.
type holding struct {
	Intents []struct {
		ID       string            `json:"id"`
		Status   string            `json:"status"`
		Amount   int64             `json:"amount"`
		Received int64             `json:"amount_received"`
		Metadata map[string]string `json:"metadata"`
	} `json:"payment_intents"`
	Charges []struct {
		ID       string `json:"id"`
		Intent   string `json:"payment_intent"`
		Status   string `json:"status"`
		Captured int64  `json:"amount_captured"`
		Refunded int64  `json:"amount_refunded"`
	} `json:"charges"`
	Refunds []struct {
		Intent string `json:"payment_intent"`
		Amount int64  `json:"amount"`
		Status string `json:"status"`
	} `json:"refunds"`
}

func (m merchant) holding(t *testing.T) (h holding) {
	t.Helper()
	m.control(t, http.MethodGet, "accounts/"+m.account+"/snapshot", nil, &h)
	return h
}

// taken returns the charged and captured amount of each booking, and how often each intent was charged.
func (h holding) taken() (bookings map[string]int64, charges map[string]int) {
	bookings, charges = map[string]int64{}, map[string]int{}
	bookingOf := map[string]string{}
	for _, i := range h.Intents {
		bookingOf[i.ID] = i.Metadata["booking_id"]
	}
	for _, c := range h.Charges {
		if c.Status == "succeeded" {
			charges[c.Intent]++
			bookings[bookingOf[c.Intent]] += c.Captured
		}
	}
	return bookings, charges
}

// paid waits until bookings shows the paid amount. A crashed process can hold an event until its lease ends.
func (m merchant) paid(t *testing.T, booking string, amount int64) {
	t.Helper()
	patient(t, fmt.Sprintf("the booking %s shows %d", booking, amount), func() bool {
		return read[chainBooking](t, m.client, "/bookings/"+booking).Paid.Amount == amount
	})
}

// TestChargedOnceUnderKillsAndLostResponses kills payments at random under load while the stand-in loses every third response. It
// checks that each requested intent is still created and charged once, and that bookings shows the amounts of the gateway.
func TestChargedOnceUnderKillsAndLostResponses(t *testing.T) {
	m := newMerchant(t, "USD")
	var rule struct{ ID int }
	m.control(t, http.MethodPost, "faults", map[string]any{"action": "close_after", "method": "POST", "path": "/v1/", "account": m.account, "every": 3}, &rule)
	clearFault := sync.OnceFunc(func() { m.control(t, http.MethodDelete, "faults/"+strconv.Itoa(rule.ID), nil, nil) })
	defer clearFault()
	rounds := 4
	if os.Getenv("TEST_SCALE") == "full" {
		rounds = 200
	}
	const keys, clients, amount = 4, 2, 100
	want := map[string]int64{} // by booking
	created := map[string]bool{}
	var booking string
	for round := range rounds {
		if round%10 == 0 {
			booking = m.booking(t)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		byKey := make([]map[string]intent, keys)
		for k := range keys {
			byKey[k] = map[string]intent{}
			key := unique("once")
			for range clients {
				all.Go(func() {
					var got intent
					m.beginWith(t, booking, amount, "", key, &got)
					mu.Lock()
					defer mu.Unlock()
					byKey[k][got.ID] = got
				})
			}
		}
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond) // somewhere in the middle of the requests
		if pid := shared.pid("payments"); pid != 0 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
		all.Wait()
		for k, seen := range byKey {
			if len(seen) != 1 {
				t.Fatalf("round %d, key %d: intents %v", round, k, slices.Collect(maps.Keys(seen)))
			}
			for id, i := range seen {
				created[id] = true
				want[booking] += amount
				all.Go(func() { m.pay(t, i) })
			}
		}
		all.Wait()
	}
	clearFault()
	m.paidOrReconciled(t, want)
	held := m.holding(t)
	bookings, charges := held.taken()
	if !maps.Equal(bookings, want) {
		t.Errorf("the stand-in holds %v, want %v", bookings, want)
	}
	for id := range created {
		if charges[id] != 1 {
			t.Errorf("%s was charged %d times", id, charges[id])
		}
	}
	if len(held.Intents) != len(created) || len(charges) != len(created) {
		t.Errorf("%d intents and %d charged ones at the stand-in, want %d", len(held.Intents), len(charges), len(created))
	}
	for booking := range want {
		for _, i := range m.list(t, "/payment-intents?limit=100&booking_id="+booking) {
			if !created[i["id"].(string)] || i["status"] != "succeeded" {
				t.Errorf("%v", i)
			}
		}
	}
}

// TestPaidTwice checks that twenty clients with one key create one intent and one charge. Two intents of the full amount can both
// succeed, and no payment is lost.
func TestPaidTwice(t *testing.T) {
	m := newMerchant(t, "USD")
	accepted := payable(t, m.client)
	key := unique("one")
	created := make([]intent, 20)
	var all sync.WaitGroup
	for i := range created {
		all.Go(func() { m.beginWith(t, accepted.BookingID, 100_000, "", key, &created[i]) })
	}
	all.Wait()
	second := m.begin(t, accepted.BookingID, 100_000, "")
	for _, i := range created {
		all.Go(func() { m.pay(t, i) })
	}
	all.Go(func() { m.pay(t, second) })
	all.Wait()
	m.paid(t, accepted.BookingID, 200_000)
	if b := read[chainBooking](t, m.client, "/bookings/"+accepted.BookingID); b.PaymentStatus != "overpaid" || b.Status != "confirmed" {
		t.Errorf("%+v", b)
	}
	if _, charges := m.holding(t).taken(); !maps.Equal(charges, map[string]int{created[0].ID: 1, second.ID: 1}) {
		t.Errorf("charges %v", charges)
	}
}

// TestPaymentRaces checks that the gateway decides conflicting operations once, and that all services show the result: a payment
// and a cancellation, a capture and a cancellation, and refunds that in total exceed the paid amount.
func TestPaymentRaces(t *testing.T) {
	m := newMerchant(t, "USD")
	agree := func(t *testing.T, booking, id string, allowed ...string) {
		t.Helper()
		var status string
		var received int64
		for _, i := range m.holding(t).Intents {
			if i.ID == id {
				status, received = i.Status, i.Received
			}
		}
		if !slices.Contains(allowed, status) {
			t.Fatalf("the stand-in says %s", status)
		}
		await(t, "the intent is "+status, func() bool {
			i := read[intent](t, m.client, "/payment-intents/"+id)
			return i.Status == status && i.Received == received
		})
		m.paid(t, booking, received)
	}
	race := func(t *testing.T, one, other func()) {
		t.Helper()
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 10 {
			all.Go(func() { <-begin; one() })
			all.Go(func() { <-begin; other() })
		}
		close(begin)
		all.Wait()
	}
	act := func(t *testing.T, id, verb string) {
		t.Helper()
		if a := m.do(t, http.MethodPost, "/payment-intents/"+id+"/"+verb, "", ""); a.Status != http.StatusOK && a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", verb, a.Status, a.Body)
		}
	}
	t.Run("cancel and succeed", func(t *testing.T) {
		for range rounds(3) {
			booking := m.booking(t)
			i := m.begin(t, booking, 500, "")
			race(t, func() { act(t, i.ID, "cancel") }, func() { m.tryConfirm(i, "pm_card_visa") })
			agree(t, booking, i.ID, "succeeded", "canceled")
		}
	})
	t.Run("capture and cancel", func(t *testing.T) {
		for range rounds(3) {
			booking := m.booking(t)
			i := m.begin(t, booking, 500, `,"capture_method":"manual"`)
			m.pay(t, i)
			await(t, "it is authorised", func() bool { return read[intent](t, m.client, "/payment-intents/"+i.ID).Status == "requires_capture" })
			race(t, func() { act(t, i.ID, "capture") }, func() { act(t, i.ID, "cancel") })
			agree(t, booking, i.ID, "succeeded", "canceled")
		}
	})
	t.Run("refunds", func(t *testing.T) {
		booking := m.booking(t)
		i := m.begin(t, booking, 1000, "")
		m.pay(t, i)
		m.paid(t, booking, 1000)
		var mu sync.Mutex
		statuses := map[int]int{}
		refund := func() {
			a := m.do(t, http.MethodPost, "/refunds", fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":300,"reason":"duplicate"}`, i.ID), unique("refund"))
			mu.Lock()
			defer mu.Unlock()
			statuses[a.Status]++
		}
		race(t, refund, refund)
		if statuses[http.StatusCreated] != 3 || statuses[http.StatusCreated]+statuses[http.StatusConflict]+statuses[http.StatusUnprocessableEntity] != 20 {
			t.Errorf("responses %v", statuses)
		}
		var sum int64
		for _, r := range m.holding(t).Refunds {
			if r.Intent == i.ID && r.Status == "succeeded" {
				sum += r.Amount
			}
		}
		if sum != 900 {
			t.Errorf("the stand-in has returned %d, want 900", sum)
		}
	})
}

// TestGatewayEventsOutOfOrder checks that events that arrive out of order, several times, or with a time one day ago do not change
// the result, and that each payment is reported once.
func TestGatewayEventsOutOfOrder(t *testing.T) {
	m := newMerchant(t, "USD")
	m.control(t, http.MethodPost, "events", map[string]any{"account": m.account, "repeat": 2, "shuffle": "1s", "age": "24h"}, nil)
	bookings := map[string]intent{}
	for range 5 {
		booking := m.booking(t)
		i := m.begin(t, booking, 700, "")
		if status, _ := m.tryConfirm(i, "pm_card_visa_chargeDeclined"); status != http.StatusPaymentRequired {
			t.Fatalf("a declined card: %d", status)
		}
		m.pay(t, i)
		bookings[booking] = i
	}
	for booking, i := range bookings {
		m.paid(t, booking, 700)
		m.insist(t, http.MethodPost, "/refunds", fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":200,"reason":"duplicate"}`, i.ID), unique("refund"), http.StatusCreated)
	}
	for _, i := range bookings {
		await(t, "the refund shows", func() bool {
			got := read[struct {
				Status   string `json:"status"`
				Refunded int64  `json:"amount_refunded"`
			}](t, m.client, "/payment-intents/"+i.ID)
			return got.Status == "succeeded" && got.Refunded == 200
		})
		await(t, "nothing waits", func() bool {
			return rows(t, shared.database(t, "payments"), `select count(*)::text from gateway_events where due_at is not null and intent = $1`, i.ID)[0] == "0"
		})
		got := map[string]int{}
		for _, e := range m.list(t, "/events?object_id="+i.ID) {
			got[e["type"].(string)]++
		}
		if got["payment.succeeded"] != 1 || got["payment.failed"] > 1 {
			t.Errorf("%s: %v", i.ID, got)
		}
	}
}

// signature returns Stripe's signature of an event.
func signature(secret string, at time.Time, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// send sends bytes as an event of the account, and returns the status; 0 if the connection is closed without a response.
func (m merchant) send(t *testing.T, url string, body io.Reader, signature string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Stripe-Signature", signature)
	res, err := httpClient.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode
}

// TestForgedGatewayEvents checks that an account's path accepts only events that its own secret signed recently. It rejects a body
// that is too long or never ends.
func TestForgedGatewayEvents(t *testing.T) {
	m, other := newMerchant(t, "USD"), newMerchant(t, "USD")
	i := m.begin(t, m.booking(t), 500, "")
	body := fmt.Sprintf(`{"id":"evt_%s","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":%q,"object":"payment_intent"}}}`, unique("forged"), i.ID)
	signed := func(secret string, at time.Time) string { return signature(secret, at, body) }
	now := time.Now()
	for name, c := range map[string]struct {
		url, signature string
		body           io.Reader
		want           []int
	}{
		"right":             {m.webhooks, signed(m.signing, now), strings.NewReader(body), []int{200}},
		"none":              {m.webhooks, "", strings.NewReader(body), []int{400}},
		"another secret":    {m.webhooks, signed("whsec_wrong", now), strings.NewReader(body), []int{400}},
		"old":               {m.webhooks, signed(m.signing, now.Add(-10*time.Minute)), strings.NewReader(body), []int{400}},
		"changed":           {m.webhooks, signed(m.signing, now), strings.NewReader(body + " "), []int{400}},
		"another's account": {other.webhooks, signed(m.signing, now), strings.NewReader(body), []int{400}},
		"no account":        {m.webhooks[:len(m.webhooks)-20] + strings.Repeat("0", 20), signed(m.signing, now), strings.NewReader(body), []int{404}},
		"10 MB":             {m.webhooks, signed(m.signing, now), strings.NewReader(strings.Repeat("x", 10<<20)), []int{413, 0}},
		"10 MB, no length":  {m.webhooks, signed(m.signing, now), io.MultiReader(strings.NewReader(strings.Repeat("x", 10<<20))), []int{413, 0}},
	} {
		if got := m.send(t, c.url, c.body, c.signature); !slices.Contains(c.want, got) {
			t.Errorf("%s: %d, want %v", name, got, c.want)
		}
	}
	if stored := rows(t, shared.database(t, "payments"), `select e.id from gateway_events e join gateway_accounts a on a.id = e.account_id where a.account = any($1) and e.id like 'evt_forged%'`,
		[]string{m.account, other.account}); len(stored) != 1 {
		t.Errorf("stored: %v", stored)
	}
	t.Run("slow", func(t *testing.T) { slowEvent(t, m) })
}

// slowEvent sends the beginning of a body and then nothing. The connection must be closed, and other events must be accepted in
// the meantime.
func slowEvent(t *testing.T, m merchant) {
	t.Helper()
	u, err := url.Parse(m.webhooks)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", u.Path, u.Host); err != nil {
		t.Fatal(err)
	}
	booking := m.booking(t)
	m.pay(t, m.begin(t, booking, 500, ""))
	m.paid(t, booking, 500)
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("the connection is open after two minutes: %v", err)
	}
	if len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 4") {
		t.Errorf("%s", text)
	}
}

// TestPaymentSecretsAreNotLeaked checks that no log line, event, audit entry, or row contains client secrets, keys, or webhook
// secrets in plain text.
func TestPaymentSecretsAreNotLeaked(t *testing.T) {
	m := newMerchant(t, "USD")
	i := m.begin(t, m.booking(t), 500, "")
	m.pay(t, i)
	m.paid(t, read[struct {
		Booking string `json:"booking_id"`
	}](t, m.client, "/payment-intents/"+i.ID).Booking, 500)
	m.send(t, m.webhooks, strings.NewReader("{}"), "t=1,v1="+m.signing) // an invalid signature
	m.do(t, http.MethodGet, "/payment-intents/"+i.ClientSecret, "", "")
	secrets := map[string]string{"client secret": i.ClientSecret, "secret key": m.secret, "webhook secret": m.signing}
	search := func(where, text string) {
		t.Helper()
		for name, secret := range secrets {
			if at := strings.Index(text, cmp.Or(secret, "?")); at >= 0 {
				t.Errorf("%s holds the %s: %s", where, name, text[max(0, at-200):min(len(text), at+20)])
			}
		}
	}
	search("the output", shared.log.String())
	logs, err := filepath.Glob(shared.path("logs", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, file := range logs {
		if strings.HasPrefix(filepath.Base(file), "stripe") {
			continue // the stand-in's own
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		search(file, string(text))
	}
	for _, topic := range []string{"payments", "bookings", "customers", "identity"} {
		for _, message := range shared.messages(t, topic) {
			search("topic "+topic, string(message.Value))
		}
	}
	for _, service := range []string{"payments", "identity", "webhooks", "bookings", "customers"} {
		conn := shared.database(t, service)
		for _, table := range rows(t, conn, `select format('%I', c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where n.nspname = 'public' and c.relkind in ('r', 'p')`) {
			for name, secret := range secrets {
				if n := rows(t, conn, `select count(*)::text from `+table+` r where strpos(r::text, $1) > 0
					or strpos(r::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0`, secret)[0]; n != "0" {
					t.Errorf("%s.%s holds the %s", service, table, name)
				}
			}
		}
	}
}
