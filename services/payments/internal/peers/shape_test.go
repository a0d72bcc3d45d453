package peers_test

import (
	"bufio"
	"context"
	"maps"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/lease"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/testservers"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
)

// startMock starts stripe-mock, which refuses what Stripe's OpenAPI does not allow, and returns its address.
func startMock(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testservers.Tool(t, "STRIPE_MOCK"), "-http-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "HTTP at address: "); ok {
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock says no address")
	return ""
}

// TestCallsMatchStripe checks that every call has the path and the parameters of Stripe's OpenAPI, and reads responses of its
// shape.
func TestCallsMatchStripe(t *testing.T) {
	t.Parallel()
	s, ctx := peers.NewStripe(startMock(t), 10*time.Second, 4), caller.With(context.Background(), caller.Service("payments", ids.New[ids.TenantPrefix](), caller.Test))
	text := func(s string) *string { return &s }
	account := domain.Account{ID: ids.New[domain.AccountPrefix](), SecretKey: "sk_test_123"}
	p := domain.Intent{
		ID: ids.New[domain.IntentPrefix](), GatewayID: "pi_1", Amount: money.Amount{Minor: 2500, Currency: "USD"}, CaptureMethod: domain.CaptureManual,
		BookingID: ids.New[ids.BookingPrefix](), InvoiceID: ids.New[ids.InvoicePrefix](), Description: text("Deposit"), ReceiptEmail: text("a@example.com"),
		Call: domain.Call{Lease: lease.Lease{Attempt: 1}}, EverDisputed: true, Charges: domain.Walk{To: "ch_0"},
	}
	r, part := aRefund("USD", 700)
	calls := map[string]func() error{
		"Account": func() error { _, _, err := s.Account(ctx, account.SecretKey); return err },
		"Create":  func() error { _, err := s.Create(ctx, account, p); return err },
		"Read":    func() error { _, err := s.Read(ctx, account, p); return err },
		"Cancel":  func() error { _, err := s.Cancel(ctx, account, p); return err },
		"Capture": func() error { _, err := s.Capture(ctx, account, p, 700); return err },
		"Find":    func() error { _, err := s.Find(ctx, account, p.ID, time.Now()); return err },
		"List": func() error {
			for _, stage := range []domain.Stage{domain.StageEvents, domain.StageIntents, domain.StageRefunds, domain.StageDisputes} {
				for _, after := range []string{"", "pi_1"} {
					if _, err := s.List(ctx, account, stage, time.Now(), after); err != nil {
						return err
					}
				}
			}
			return nil
		},
		"Get": func() error {
			for _, kind := range []domain.Stage{domain.StageIntents, domain.StageRefunds, domain.StageDisputes} {
				if _, err := s.Get(ctx, account, kind, "x_1"); err != nil {
					return err
				}
			}
			return nil
		},
		"CreateRefund": func() error { _, err := s.CreateRefund(ctx, account, r, part); return err },
		"ReadRefund":   func() error { _, err := s.ReadRefund(ctx, account, "re_1"); return err },
		"FindRefund":   func() error { _, err := s.FindRefund(ctx, account, part, time.Now()); return err },
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var all []string
	for method := range reflect.TypeOf(s).Methods() {
		if method.Type.NumIn() > 1 && method.Type.In(1) == reflect.TypeFor[context.Context]() {
			all = append(all, method.Name)
		}
	}
	if tried := slices.Sorted(maps.Keys(calls)); !slices.Equal(tried, all) {
		t.Errorf("the calls are %v, and %v are tried", all, tried)
	}
}
