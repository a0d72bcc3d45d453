package peers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/lease"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
)

// request is a request that the gateway received.
type request struct {
	method, path, key string
	form              url.Values
}

// gateway responds to each request with the next of responses, a status and a body.
func gateway(t *testing.T, responses ...string) (*peers.Stripe, *[]request) {
	t.Helper()
	got := &[]request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		*got = append(*got, request{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Form})
		var status int
		if _, err := fmt.Sscanf(responses[0], "%d", &status); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(responses[0][4:]))
		responses = responses[1:]
	}))
	t.Cleanup(server.Close)
	return peers.NewStripe(server.URL, time.Second, 1), got
}

func aRefund(code string, minor int64) (domain.Refund, domain.Allocation) {
	part := domain.Allocation{ID: ids.New[domain.AllocationPrefix](), Intent: "pi_1", Minor: minor, Attempt: 2}
	return domain.Refund{
		ID: ids.New[domain.RefundPrefix](), Reason: "duplicate", Amount: money.Amount{Minor: minor, Currency: code}, Allocations: []domain.Allocation{part},
	}, part
}

func TestCreateRefund(t *testing.T) {
	t.Parallel()
	s, got := gateway(t, `200 {"id":"re_1","object":"refund","status":"pending","metadata":{"holdfast_refund":"rfa_1"}}`)
	r, part := aRefund("UGX", 700)
	refund, err := s.CreateRefund(context.Background(), domain.Account{SecretKey: "sk_test_1"}, r, part)
	if err != nil || refund.ID != "re_1" || refund.Status != domain.RefundPending || refund.Row != "rfa_1" {
		t.Errorf("%+v, %v", refund, err)
	}
	a := (*got)[0]
	if a.method != "POST" || a.path != "/v1/refunds" || a.key != part.ID.String()+":2" || a.form.Get("amount") != "70000" ||
		a.form.Get("payment_intent") != "pi_1" || a.form.Get("reason") != "duplicate" || a.form.Get("metadata[holdfast_refund]") != part.ID.String() {
		t.Errorf("%+v", a)
	}
}

// TestRefundOutcomes checks whether each response of the gateway means that the refund was created, was refused, or neither.
func TestRefundOutcomes(t *testing.T) {
	t.Parallel()
	var refused *domain.RefusedError
	var busy *domain.BusyError
	var broken *domain.BrokenError
	for response, is := range map[string]func(error) bool{
		`400 {"error":{"type":"invalid_request_error","code":"charge_already_refunded","message":"x"}}`: func(err error) bool { return errors.As(err, &refused) && !refused.Unread },
		`401 {"error":{"type":"invalid_request_error","message":"x"}}`:                                  func(err error) bool { return errors.As(err, &refused) && refused.Unread },
		`429 {"error":{"type":"invalid_request_error","message":"x"}}`:                                  func(err error) bool { return errors.As(err, &busy) },
		`500 {"error":{"type":"api_error","message":"x"}}`:                                              func(err error) bool { return errors.As(err, &broken) },
		`409 {"error":{"type":"idempotency_error","message":"x"}}`:                                      func(err error) bool { return !errors.As(err, new(*domain.RefusedError)) },
		`200 {"id":"re_1","status":"strange"}`:                                                          func(err error) bool { return !errors.As(err, new(*domain.RefusedError)) },
		`200 {`:                                                                                         func(err error) bool { return !errors.As(err, new(*domain.RefusedError)) },
	} {
		s, _ := gateway(t, response)
		r, part := aRefund("USD", 700)
		if _, err := s.CreateRefund(context.Background(), domain.Account{}, r, part); err == nil || !is(err) {
			t.Errorf("%s: %v", response, err)
		}
	}
}

func TestReadAndFindRefund(t *testing.T) {
	t.Parallel()
	_, part := aRefund("USD", 700)
	one := func(id, row string) string {
		return fmt.Sprintf(`{"id":%q,"object":"refund","status":"failed","failure_reason":"lost_or_stolen_card","metadata":{"holdfast_refund":%q}}`, id, row)
	}
	page := func(more bool, rows string) string {
		return fmt.Sprintf(`200 {"object":"list","has_more":%t,"data":[%s]}`, more, rows)
	}
	s, got := gateway(t, "200 "+one("re_1", "rfa_1"), page(true, one("re_9", "rfa_9")), page(false, one("re_2", part.ID.String())), page(false, one("re_9", "")))
	refund, err := s.ReadRefund(context.Background(), domain.Account{}, "re_1")
	if err != nil || refund.Status != domain.RefundFailed || refund.Failure == nil || refund.Failure.Code != "lost_or_stolen_card" || refund.Failure.Message == "" {
		t.Errorf("%+v, %v", refund, err)
	}
	found, err := s.FindRefund(context.Background(), domain.Account{}, part, time.Unix(1000, 0))
	if err != nil || found == nil || found.ID != "re_2" || (*got)[1].form.Get("payment_intent") != "pi_1" ||
		(*got)[1].form.Get("created[gte]") != "940" || (*got)[2].form.Get("starting_after") != "re_9" {
		t.Errorf("%+v, %v, %+v", found, err, *got)
	}
	if found, err = s.FindRefund(context.Background(), domain.Account{}, part, time.Unix(1000, 0)); err != nil || found != nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestServerErrorsAreUnknown checks that a server error of the gateway never counts as a refusal, regardless of the call and its
// body, because the effect is unknown.
func TestServerErrorsAreUnknown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r, part := aRefund("USD", 700)
	p := domain.Intent{ID: ids.New[domain.IntentPrefix](), GatewayID: "pi_1", Amount: money.Amount{Minor: 700, Currency: "USD"}, Call: domain.Call{Lease: lease.Lease{Attempt: 1}}}
	calls := map[string]func(s *peers.Stripe) error{
		"create":  func(s *peers.Stripe) error { _, err := s.Create(ctx, domain.Account{}, p); return err },
		"cancel":  func(s *peers.Stripe) error { _, err := s.Cancel(ctx, domain.Account{}, p); return err },
		"capture": func(s *peers.Stripe) error { _, err := s.Capture(ctx, domain.Account{}, p, 700); return err },
		"refund":  func(s *peers.Stripe) error { _, err := s.CreateRefund(ctx, domain.Account{}, r, part); return err },
	}
	bodies := []string{
		`{"error":{"type":"api_error","message":"x"}}`, `{"error":{"type":"card_error","code":"card_declined","message":"x"}}`,
		`{"error":{"type":"invalid_request_error","code":"charge_already_refunded","message":"x"}}`, `{}`, `{"error":`, `<html>`,
	}
	for name, call := range calls {
		for _, status := range []int{408, 500, 502, 503, 504} {
			for _, body := range bodies {
				s, _ := gateway(t, fmt.Sprint(status, " ", body))
				err := call(s)
				if err == nil || errors.As(err, new(*domain.RefusedError)) || errors.As(err, new(*domain.BusyError)) {
					t.Errorf("%s, response %d %s: %v", name, status, body, err)
				}
			}
		}
		s, _ := gateway(t, `400 {"error":{"type":"api_error","message":"x"}}`)
		if err := call(s); err == nil || errors.As(err, new(*domain.RefusedError)) {
			t.Errorf("%s, response with an api_error: %v", name, err)
		}
	}
}
