package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stripeObjects returns the objects of an intent at the stand-in; nil while the stand-in is starting.
func (p *platform) stripeObjects(t *testing.T, kind, intent string) []map[string]any {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.env["STRIPE_URL"]+"/v1/"+kind+"?"+url.Values{"payment_intent": {intent}, "limit": {"100"}}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+settingOf(t, p.path("services", "stripe.env"), "LOCAL_STRIPE_TEST_SECRET_KEY"))
	res, err := httpClient.Do(req)
	if err != nil {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	var page struct{ Data []map[string]any }
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
		return nil
	}
	return page.Data
}

// movements returns the balance transactions of an intent's charges and refunds at the stand-in.
func (p *platform) movements(t *testing.T, intent string) (list []string) {
	t.Helper()
	for _, kind := range []string{"charges", "refunds"} {
		for _, object := range p.stripeObjects(t, kind, intent) {
			if id, ok := object["balance_transaction"].(string); ok {
				list = append(list, id)
			}
		}
	}
	slices.Sort(list)
	return list
}

// TestLedgerUnderKills checks that each movement at the gateway is in the ledger once, regardless of which process crashes. It
// kills payments and the stand-in while an intent is paid, and while a part of it is refunded.
func TestLedgerUnderKills(t *testing.T) {
	s, c := shared.stripe(t), shared.as(t, "DEMO_TEST_KEY")
	rounds := 2
	if os.Getenv("TEST_SCALE") == "full" {
		rounds = 50
	}
	payments := shared.database(t, "payments")
	for round := range rounds {
		created, _ := deposit(t, c)
		for step, do := range []func(){
			func() { s.confirm(t, created, "pm_card_visa") },
			func() {
				reconciled(t, "the intent has succeeded", func() bool { return read[intent](t, c, "/payment-intents/"+created.ID).Status == "succeeded" })
				key := unique("refund")
				await(t, "the refund is created", func() bool {
					a, err := c.try(t, http.MethodPost, "/refunds",
						fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":5000,"reason":"duplicate"}`, created.ID), key)
					if err != nil || a.Status >= http.StatusInternalServerError || a.Status == http.StatusConflict {
						return false
					}
					if a.Status != http.StatusCreated {
						t.Fatalf("%d %s", a.Status, a.Body)
					}
					return true
				})
			},
		} {
			var killer sync.WaitGroup
			killer.Go(func() {
				time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
				if pid := shared.pid([]string{"payments", "stripe"}[(round+step)%2]); pid != 0 {
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
						t.Error(err)
					}
				}
			})
			do()
			killer.Wait()
		}
		var want, got []string
		reconciled(t, "the ledger has what the gateway has", func() bool {
			want = shared.movements(t, created.ID)
			got = rows(t, payments, `select l.movement from ledger_entries l join payment_intents p on p.id = l.intent_id
				where p.gateway_id = $1 and l.ledger_account = 'gateway_balance' order by l.movement`, created.ID)
			return len(want) == 2 && len(got) >= len(want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("round %d: %q, and the gateway has %q", round, got, want)
		}
	}
	if bad := rows(t, payments, `select movement from ledger_entries group by tenant_id, livemode, account_id, movement, currency having sum(amount) <> 0`); len(bad) > 0 {
		t.Errorf("%q do not balance", bad)
	}
}
