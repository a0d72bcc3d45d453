package peers_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/peers"
)

// TestRefundNote checks the request for the refund of a credit note, and that only a conflict or an invalid amount is a refusal. An
// earlier version of payments, which lacks the call, refuses nothing.
func TestRefundNote(t *testing.T) {
	t.Parallel()
	n := domain.CreditNote{
		ID: ids.New[ids.CreditNotePrefix](), BookingID: ids.New[ids.BookingPrefix](), Refund: money.Amount{Minor: 30, Currency: "USD"},
		Parts: []domain.NotePart{{Charge: "pi_1", Amount: 20}, {Charge: "pi_2", Amount: 10}},
	}
	for name, c := range map[string]struct {
		status           int
		body             string
		refused, unknown bool
	}{
		"created":         {200, `{"id":"rf_1","status":"pending","shown":true,"version":2,"parts":[{"payment_intent_id":"pi_1","amount":20,"status":"failed"}]}`, false, false},
		"nothing is left": {409, `{"error":{"type":"invalid_request_error","code":"nothing_to_refund","message":"m"}}`, true, false},
		"too much":        {422, `{"error":{"type":"validation_error","code":"invalid_request","message":"m","param":"parts"},"errors":{"parts":["m"]}}`, true, false},
		"no such call":    {404, `{"error":{"type":"invalid_request_error","code":"not_found","message":"m"}}`, false, true},
		"down":            {503, `{"error":{"type":"api_error","code":"unavailable","message":"m"}}`, false, true},
	} {
		var path, body string
		client := other(t, "payments", func(w http.ResponseWriter, r *http.Request, _ caller.Caller) {
			raw, _ := io.ReadAll(r.Body)
			path, body = r.Method+" "+r.URL.Path, string(raw)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		got, err := (&peers.Payments{Client: client}).RefundNote(pgtest.Ctx(t, caller.Test), n, 3)
		var refused *domain.RefusedRefundError
		if errors.As(err, &refused) != c.refused || (err != nil) != (c.refused || c.unknown) {
			t.Errorf("%s: %v", name, err)
		}
		if path != "POST /internal/v1/credit-note-refunds" || !json.Valid([]byte(body)) || !strings.Contains(body, n.ID.String()) ||
			!strings.Contains(body, `{"payment_intent_id":"pi_2","amount":10}`) && !strings.Contains(body, `{"amount":10,"payment_intent_id":"pi_2"}`) {
			t.Errorf("%s: %s with %s", name, path, body)
		}
		want := domain.NoteRefund{ID: "rf_1", Status: "pending", Shown: true, Version: 2, Parts: []domain.NoteRefundPart{{Charge: "pi_1", Amount: 20, Status: "failed"}}}
		if err == nil && (got.ID != want.ID || got.Status != want.Status || !got.Shown || got.Version != 2 || len(got.Parts) != 1 || got.Parts[0] != want.Parts[0]) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
