package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
)

// reading is one kind of request of a tenant, with the processes that handle it.
type reading struct {
	urls      []string
	header    http.Header
	form      url.Values // of a POST; nil: a GET
	processes []string
	limit     int // MiB: the chart's limit of these processes
}

// downloadClient waits longer than the longest download that the gateway allows, which takes more than five minutes.
var downloadClient = &http.Client{Timeout: 6 * time.Minute, Transport: httpClient.Transport}

// request requests one of the URLs and reads the complete response. It logs why there is none.
func (l reading) request(t *testing.T, n int) (status int, took time.Duration) {
	method := http.MethodGet
	if l.form != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, l.urls[n%len(l.urls)], strings.NewReader(l.form.Encode()))
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	req.Header = l.header.Clone()
	began := time.Now()
	res, err := downloadClient.Do(req)
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		_, err = io.Copy(io.Discard, res.Body)
	}
	if err != nil {
		t.Logf("no complete response after %v: %v", time.Since(began), err)
		return 0, time.Since(began)
	}
	return res.StatusCode, time.Since(began)
}

// measured sends requests one after the other and returns their median and their 99th percentile. Each response must be 200.
func (l reading) measured(t *testing.T, requests int) (p50, p99 time.Duration) {
	t.Helper()
	times := make([]time.Duration, requests)
	for n := range times {
		var status int
		if status, times[n] = l.request(t, n); status != http.StatusOK {
			t.Errorf("the other tenant's request: %d after %v", status, times[n])
		}
		time.Sleep(20 * time.Millisecond)
	}
	slices.Sort(times)
	return times[len(times)/2], times[len(times)*99/100-1]
}

// largest returns the memory of the largest of some processes of the platform, in MiB.
func (p *platform) largest(processes []string) (mib int) {
	for _, name := range processes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid(name)))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(text), "RssAnon:") // file-backed pages of the program are released when memory is short
		kib, _ := strconv.Atoi(strings.Fields(after)[0])
		mib = max(mib, kib>>10)
	}
	return mib
}

// tenantAtWorst creates a tenant with a booking and an invoice whose lines contain a text, and returns the kinds of requests to
// it.
func tenantAtWorst(t *testing.T, text string, lines, bookings, feeds int) map[string]reading {
	t.Helper()
	slug := strings.ReplaceAll(unique("worst"), "-", "")
	var created struct{ ID, Secret string }
	shared.identity(t, &created, "tenant", "create", "--slug", slug, "--name", "Harbour", "--timezone", "Europe/Berlin", "--currency", "USD", "--json")
	shared.identity(t, &created, "key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json")
	c := shared.with(t, created.Secret)
	customer := c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"W","email":"w@example.com"}`).id(t)
	line := fmt.Sprintf(`{"description":%q,"quantity":1,"unit_amount":{"amount":100,"currency":"USD"}}`, text)
	invoice := c.want(t, http.StatusCreated, http.MethodPost, "/invoices", fmt.Sprintf(`{"customer_id":%q,"line_items":[%s]}`, customer,
		strings.TrimSuffix(strings.Repeat(line+",", lines), ","))).id(t)
	booking, err := ids.Parse[ids.BookingPrefix](c.want(t, http.StatusCreated, http.MethodPost, "/bookings", fmt.Sprintf(`{"customer_id":%q,"event_date":%q,"notes":%q}`,
		customer, time.Now().AddDate(0, 0, 30).Format(time.DateOnly), strings.Repeat("n", min(len(text), 500)))).id(t))
	if err != nil {
		t.Fatal(err)
	}
	execute(t, shared.database(t, "bookings"), `insert into bookings
		select (jsonb_populate_record(b, jsonb_build_object('id', gen_random_uuid(), 'number', 'W-' || n))).*
		from bookings b, generate_series(1, $1::int) n where b.id = $2`, bookings, booking.UUID())
	bearer := http.Header{"Authorization": {"Bearer " + created.Secret}}
	calendars := reading{processes: []string{"bookings", "gateway"}, header: http.Header{}, limit: 256}
	for range feeds {
		var feed struct{ URL string }
		c.want(t, http.StatusCreated, http.MethodPost, "/calendar-feeds", `{"name":"W","include_details":true}`).decode(t, &feed)
		calendars.urls = append(calendars.urls, feed.URL)
	}
	csv := bearer.Clone()
	csv.Set("Accept", "text/csv")
	lengthenAudit(t, slug, bookings)
	cookies, form := ownerOf(t, slug)
	return map[string]reading{
		"documents": {[]string{c.base + "/invoices/" + invoice + "/pdf"}, bearer, nil, []string{"customers", "gateway"}, 256},
		"calendars": calendars,
		"downloads": {[]string{c.base + "/bookings"}, csv, nil, []string{"bookings", "gateway"}, 256},
		"exports":   {[]string{c.base + "/customers/" + customer + "/export"}, bearer, nil, []string{"customers", "bookings", "gateway"}, 256},
		"verifications": {
			[]string{shared.env["AUTH_URL"] + "/admin/" + slug + "/test/audit/verify"}, cookies, form, []string{"identity", "console", "gateway"}, 256,
		},
	}
}

// ownerOf creates an owner of the tenant, signs them in to the console, and returns the header and the form of their requests.
func ownerOf(t *testing.T, slug string) (http.Header, url.Values) {
	t.Helper()
	var invited struct{ Link string }
	shared.identity(t, &invited, "operator", "invite", slug+"@example.com", "--tenant", slug, "--name", "Dana", "--role", "owner", "--json")
	p := newPerson(t, shared.env["AUTH_URL"])
	password := unique("a long password of")
	_, body := p.open(http.MethodGet, invited.Link, nil)
	p.submit(body, url.Values{"password": {password}})
	_, body = p.open(http.MethodGet, p.base+"/admin/"+slug+"/test/audit", nil)
	res, body := p.submit(body, url.Values{"email": {slug + "@example.com"}, "password": {password}})
	if res.StatusCode != http.StatusOK || !strings.Contains(body, "audit/verify") {
		t.Fatalf("%s: %d %s", res.Request.URL, res.StatusCode, body)
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for _, cookie := range p.client.Jar.Cookies(res.Request.URL) {
		header.Add("Cookie", cookie.Name+"="+cookie.Value)
	}
	form := url.Values{}
	_, body, _ = strings.Cut(body, `audit/verify">`)
	body, _, _ = strings.Cut(body, "</form>")
	for _, m := range formHidden.FindAllStringSubmatch(body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return header, form
}

// lengthenAudit appends records to the audit log of a tenant, hashed as identity hashes them.
func lengthenAudit(t *testing.T, slug string, records int) {
	t.Helper()
	type head struct {
		ID   [16]byte
		Seq  int64
		Hash []byte
	}
	ctx, db := t.Context(), shared.database(t, "identity")
	execute(t, db, `begin`) // identity also appends the records of the other services
	found, err := db.Query(ctx, `select tenant_id, h.seq, h.hash from audit_heads h join tenants t using (tenant_id) where t.slug = $1 for update of h`, slug)
	if err != nil {
		t.Fatal(err)
	}
	h, err := pgx.CollectExactlyOneRow(found, pgx.RowToStructByPos[head])
	if err != nil {
		t.Fatal(err)
	}
	at, list := time.Now().UTC().Truncate(time.Microsecond), make([][]any, records)
	after := json.RawMessage(`{"fields":["` + strings.Repeat("x", 500) + `"]}`)
	for n := range list {
		form, err := json.Marshal(struct {
			Tenant                string
			Livemode              bool
			Seq                   int64
			At                    time.Time
			Actor, Action, Object string
			Before, After         json.RawMessage
			Source                string
			Prev                  []byte
		}{ids.FromUUID[ids.TenantPrefix](h.ID).String(), false, h.Seq + 1, at, "w", "w", "w", nil, after, "w", h.Hash})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(form)
		list[n] = []any{h.ID, false, h.Seq + 1, at, "w", "w", "w", after, "w", h.Hash, sum[:]}
		h.Seq, h.Hash = h.Seq+1, sum[:]
	}
	columns := []string{"tenant_id", "livemode", "seq", "at", "actor", "action", "object", "after", "source", "prev_hash", "hash"}
	if _, err := db.CopyFrom(ctx, pgx.Identifier{"audit_log"}, columns, pgx.CopyFromRows(list)); err != nil {
		t.Fatal(err)
	}
	execute(t, db, `update audit_heads set seq = $2, hash = $3 where tenant_id = $1`, h.ID, h.Seq, h.Hash)
	execute(t, db, `commit`)
}

// TestOneTenantAtItsWorst checks that a tenant that sends the most expensive requests as often as it can gets only 200 and 429.
// Another tenant's requests of the same kind all succeed, and the processes stay below the chart's memory limit. The times are
// only reported, because all processes, including the attackers, share the machine.
func TestOneTenantAtItsWorst(t *testing.T) {
	if shared.cluster != nil {
		return // the processes run in pods
	}
	requests := scaled(40, 100)
	const attackers = 20
	worst := tenantAtWorst(t, strings.Repeat("x\n", 2499)+"x", 100, 15_000, 2*attackers)
	other := tenantAtWorst(t, "A day on the water", 5, 100, 4)
	for kind, l := range worst {
		t.Run(kind, func(t *testing.T) {
			p50alone, alone := other[kind].measured(t, requests)
			var responses [600]atomic.Int64 // by status; 0: none
			stop := make(chan struct{})
			var all sync.WaitGroup
			for i := range attackers {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Second / attackers) // so that they do not all repeat at the same moment
					for n := i; ; n += attackers {
						select {
						case <-stop:
							return
						default:
						}
						status, _ := l.request(t, n)
						responses[status].Add(1)
						if status == http.StatusTooManyRequests {
							time.Sleep(time.Second) // twice the rate limit of one key
						}
					}
				})
			}
			memory := 0
			all.Go(func() {
				for ; ; time.Sleep(20 * time.Millisecond) {
					select {
					case <-stop:
						return
					default:
						memory = max(memory, shared.largest(l.processes))
					}
				}
			})
			time.Sleep(2 * time.Second)
			p50concurrent, concurrent := other[kind].measured(t, requests)
			close(stop)
			all.Wait()
			t.Logf("another tenant's median: %v alone, %v at the same time; p99: %v, %v (%.1f times); at most %d MiB; %d × 200, %d × 429",
				p50alone, p50concurrent, alone, concurrent, float64(concurrent)/float64(alone), memory, responses[http.StatusOK].Load(), responses[http.StatusTooManyRequests].Load())
			for status := range responses {
				if n := responses[status].Load(); n > 0 && status != http.StatusOK && status != http.StatusTooManyRequests {
					t.Errorf("%d responses with status %d", n, status)
				}
			}
			if memory == 0 || memory >= l.limit {
				t.Errorf("%d MiB of memory, the limit is %d", memory, l.limit)
			}
		})
	}
}
