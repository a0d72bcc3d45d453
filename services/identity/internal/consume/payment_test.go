package consume_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"
)

// TestDisputesAreAudited checks that the audit log describes in plain words that a dispute begins or ends.
func TestDisputesAreAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	due := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	dispute := func(kind, outcome string, version int64, by *time.Time) kafkax.Message {
		return written(t, "payments", tenant.ID, func(e *eventsv1.Event) {
			e.Type, e.ObjectId, e.ResourceVersion, e.Internal, e.Actor, e.RequestId = kind, "dp_1", version, true, "svc:payments", ""
			e.PreviousAttributes = nil
			body, err := json.Marshal(internalapi.Dispute{
				ID: "dp_1", PaymentIntentID: "pi_1", Amount: 70_000, Currency: "KWD", Reason: "product_not_received", Outcome: outcome, DueBy: by,
			})
			if err != nil {
				t.Fatal(err)
			}
			e.Object = body
		})
	}
	batch := []kafkax.Message{
		written(t, "payments", tenant.ID, func(e *eventsv1.Event) { e.Type, e.ObjectId, e.Internal = "account.updated", "bk_1", true }), // not audited
		dispute("dispute.opened", "", 1, &due), dispute("dispute.closed", "lost", 2, nil), dispute("dispute.opened", "", 3, nil),
		dispute("dispute.closed", "won", 4, nil), dispute("dispute.closed", "withdrawn", 5, nil),
	}
	for range 2 {
		if err := w.HandleBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range w.log(t, tenant) {
		var after struct{ Summary string }
		if err := json.Unmarshal(r.After, &after); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(r.Actor, " ", r.Action, " ", r.Object, " ", r.Source, ": ", after.Summary))
	}
	want := []string{
		"svc:payments dispute.opened dp_1 payments: The payer disputes 70.000 KWD of payment intent pi_1: product not received. " +
			"You can respond at the payment gateway until 2026-05-04T12:00:00Z.",
		"svc:payments dispute.closed dp_1 payments: The dispute of 70.000 KWD of payment intent pi_1 is lost: the money is gone.",
		"svc:payments dispute.opened dp_1 payments: The payer disputes 70.000 KWD of payment intent pi_1: product not received.",
		"svc:payments dispute.closed dp_1 payments: The dispute of 70.000 KWD of payment intent pi_1 is won: the money stays.",
		"svc:payments dispute.closed dp_1 payments: The dispute of 70.000 KWD of payment intent pi_1 is withdrawn: the money stays.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, object := range []string{`{"id":"dp_2"}`, `{}`, `[]`} {
		wrong := written(t, "payments", tenant.ID, func(e *eventsv1.Event) {
			e.Type, e.ObjectId, e.Object = "dispute.opened", "dp_1", []byte(object)
		})
		if err := w.Handle(t.Context(), wrong); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", object, err)
		}
	}
}
