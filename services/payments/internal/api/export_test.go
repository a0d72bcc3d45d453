package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// ofCustomer is a page of the internal call for exports.
type ofCustomer struct {
	Data []json.RawMessage
	IDs  []string
	Next string
}

func (w *world) ofCustomer(ctx context.Context, customer, query string) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, "customers", "GET", "/internal/v1/payment-intents?customer_id="+customer+query, "")}
}

// TestIntentsOfACustomer checks that the payment intents of a customer are returned in their public form, newest first, without
// those of other customers. Intents that the gateway does not know are not included.
func TestIntentsOfACustomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	live := pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live)
	w.connect(live)
	b := w.bookings.Add(ctx, "pending", 1000, 1000, "USD")
	for _, elsewhere := range []context.Context{ctx, live, w.tenant()} {
		w.post(elsewhere, w.booked(elsewhere, 1000)).is(201)
	}
	var want []string
	for range 3 {
		want = append([]string{w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"receipt_email":"a@example.com"}`, b.ID)).is(201).intent().ID}, want...)
	}
	w.gateway.Before = func(context.Context, string) error { return errLost }
	w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(502)
	w.gateway.Before = nil
	customer := b.CustomerID.String()
	var got ofCustomer
	if err := json.Unmarshal(w.ofCustomer(ctx, customer, "").is(200).Body, &got); err != nil || len(got.Data) != len(want) || got.Next != "" || got.IDs != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, body := range got.Data {
		if public := w.do(ctx, "GET", "/payment-intents/"+want[i], "").is(200); string(public.Body) != string(body) {
			t.Errorf("got %s, want %s", body, public.Body)
		}
	}
	got = ofCustomer{}
	if err := json.Unmarshal(w.ofCustomer(ctx, customer, "&ids_only=true").is(200).Body, &got); err != nil || !slices.Equal(got.IDs, want) || got.Data != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, other := range []context.Context{live, pgtest.Ctx(t, caller.Test)} {
		if a := w.ofCustomer(other, customer, "").is(200); string(a.Body) != `{}` {
			t.Errorf("elsewhere: %s", a.Body)
		}
	}
	w.ofCustomer(ctx, "x", "").is(422, "invalid_request", "customer_id")
	for _, cursor := range []string{"x", "1.x", ".00", "1." + customer} {
		w.ofCustomer(ctx, customer, "&cursor="+url.QueryEscape(cursor)).is(422, "invalid_request", "cursor")
	}
	response{w.Send(ctx, w.engine, "gateway", "GET", "/internal/v1/payment-intents?customer_id="+customer, "")}.is(401, "invalid_credential")
}

// TestRefundsOfACustomer checks that the refunds of a customer are returned in their public form, newest first, on limited pages,
// without those of other customers.
func TestRefundsOfACustomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	live := pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live)
	w.connect(live)
	b := w.bookings.Add(ctx, "confirmed", 10_000, 10_000, "USD")
	of := func(ctx context.Context, customer, more string) (got ofCustomer) {
		t.Helper()
		a := response{w.Send(ctx, w.engine, "customers", "GET", "/internal/v1/refunds?customer_id="+customer+more, "")}.is(200)
		if err := json.Unmarshal(a.Body, &got); err != nil || len(got.Data) > 1000 {
			t.Fatal(err)
		}
		return got
	}
	customer := b.CustomerID.String()
	for _, elsewhere := range []context.Context{ctx, live, w.tenant()} {
		other := w.bookings.Add(elsewhere, "confirmed", 1000, 1000, "USD")
		w.refund(elsewhere, refundOf(w.paidOf(elsewhere, other, 1000), "")).is(201)
	}
	if got := of(ctx, customer, ""); len(got.Data) != 0 {
		t.Errorf("before the first: %s", got.Data)
	}
	w.paidOf(ctx, b, 1000)
	w.paidOf(ctx, b, 2000)
	want := []string{w.refund(ctx, refundOfBooking(b, "")).is(201).refund().ID} // of both payments
	want = append([]string{w.refund(ctx, refundOf(w.paidOf(ctx, b, 3000), `,"amount_minor":500`)).is(201).refund().ID}, want...)
	got := of(ctx, customer, "")
	if len(got.Data) != len(want) || got.Next != "" {
		t.Fatalf("%s, %q", got.Data, got.Next)
	}
	for i, body := range got.Data {
		if public := w.do(ctx, "GET", "/refunds/"+want[i], "").is(200); string(public.Body) != string(body) {
			t.Errorf("got %s, want %s", body, public.Body)
		}
	}
	for _, other := range []context.Context{live, w.tenant()} {
		if got := of(other, customer, ""); len(got.Data) != 0 {
			t.Errorf("elsewhere: %s", got.Data)
		}
	}
	response{w.Send(ctx, w.engine, "customers", "GET", "/internal/v1/refunds?customer_id=x", "")}.is(422, "invalid_request", "customer_id")
	response{w.Send(ctx, w.engine, "customers", "GET", "/internal/v1/refunds?cursor=x&customer_id="+customer, "")}.is(422, "invalid_request", "cursor")
	response{w.Send(ctx, w.engine, "gateway", "GET", "/internal/v1/refunds?customer_id="+customer, "")}.is(401, "invalid_credential")

	w.Exec(`
		with source as (select r from refunds r where r.booking_id = $1 limit 1), made as (
			insert into refunds select (jsonb_populate_record((source.r), jsonb_build_object('id', gen_random_uuid(), 'key', null, 'credential_id', null))).*
			from source, generate_series(1, 1200) returning tenant_id, livemode, id, booking_id)
		insert into refund_allocations (tenant_id, livemode, refund_id, position, id, intent_id, amount, status, gateway_id, attempt, attempted_at)
		select m.tenant_id, m.livemode, m.id, 0, gen_random_uuid(), p.id, 1, 'succeeded', 're_' || m.id, 1, now()
		from made m join lateral (select p.id from payment_intents p where p.booking_id = m.booking_id limit 1) p on true`, b.ID)
	seen := map[string]bool{}
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		got := of(ctx, customer, "&cursor="+url.QueryEscape(cursor))
		for _, body := range got.Data {
			seen[string(body)] = true
		}
		cursor = got.Next
	}
	if len(seen) != 1202 || pages < 2 {
		t.Errorf("%d refunds on %d pages", len(seen), pages)
	}
}

// TestPagesOfIntentsOfACustomer checks that pages have a limited number of rows. An intent created between two pages causes neither
// a repeated nor a skipped intent.
func TestPagesOfIntentsOfACustomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "pending", 1000, 1000, "USD")
	body := fmt.Sprintf(`{"booking_id":%q}`, b.ID)
	w.post(ctx, body).is(201)
	const more = 2400
	w.Exec(`insert into payment_intents select (jsonb_populate_record(p, jsonb_build_object('id', gen_random_uuid(), 'gateway_id', 'pi_' || n))).*
		from payment_intents p, generate_series(1, $1::int) n`, more)
	for _, query := range []string{"", "&ids_only=true"} {
		var all []string
		pages := 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			var got ofCustomer
			res := w.ofCustomer(ctx, b.CustomerID.String(), query+"&cursor="+url.QueryEscape(cursor)).is(200)
			if err := json.Unmarshal(res.Body, &got); err != nil || len(got.Data) > 1000 || len(got.IDs) > 1000 {
				t.Fatalf("%d bodies, %d ids, %v", len(got.Data), len(got.IDs), err)
			}
			all, cursor = append(all, got.IDs...), got.Next
			for _, one := range got.Data {
				all = append(all, string(one))
			}
			w.post(ctx, body).is(201)
		}
		n := len(all)
		slices.Sort(all)
		if all = slices.Compact(all); len(all) != n || n < more+1 || pages < 3 {
			t.Errorf("%q: %d different of %d on %d pages", query, len(all), n, pages)
		}
	}
}
