package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/sqlbench"
)

const (
	sharedUnit     = units + 1 // of unitUUID
	departureSeats = 1_000_000 // more than a measurement takes
	guests         = 50        // clients that join one departure at the same time
)

// joins compares bookings that join one session with the same transaction in pgbench. All of them wait for the lock of one unit and of
// one session. It also measures how long 50 clients wait that join at the same time.
func (b *bench) joins(ctx context.Context, s *shop) error {
	if err := s.addSharedUnit(ctx); err != nil {
		return err
	}
	for key, day := range map[string]time.Time{"first-join": firstDay, "first-recorded-join": recordedDay} {
		if _, err := s.join(ctx, key, day); err != nil { // the first booking opens the session
			return err
		}
	}
	body := s.joinBody(firstDay)
	ours := &served{name: "POST /bookings, one departure", target: load.Target{
		Addr: s.addr, Status: http.StatusCreated,
		Nth: func(n int) []byte {
			return load.Request(http.MethodPost, "/api/v1/bookings", s.headers(s.key, fmt.Sprintf("join-%d", n)), body)
		},
	}}
	if _, err := ours.send(ctx, connections, warmUp); err != nil {
		return err
	}
	script, err := b.recordedCreate(ctx, s, "join", func(key string, _ int) (string, error) {
		return s.join(ctx, key, recordedDay)
	}, func(v sqlbench.Vary) sqlbench.Vary {
		v.Setup = []string{"\\set d 0"} // all join the departure of the recorded booking
		return v
	})
	if err != nil {
		return err
	}
	same := &replayed{script: script, url: s.app, start: s.freeSlots}
	if err := b.alternate(ctx, b.serve(ctx, ours), same); err != nil {
		return err
	}
	row := rateRow("`POST /bookings` that joins one departure, through gateway and service", ours.Rate(), same.Rate(), 0)
	row.Show = "joins"
	b.table.Add(row)
	b.noteCosts(ours, same)
	return b.joinAtOnce(ctx, s)
}

// joinAtOnce makes clients join one departure at the same time, again and again.
func (b *bench) joinAtOnce(ctx context.Context, s *shop) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: guests}}
	defer client.CloseIdleConnections()
	body := s.joinBody(firstDay)
	var times []time.Duration
	for len(times) < 2*b.Seconds {
		statuses, began := make([]int, guests), time.Now()
		var group sync.WaitGroup
		for i := range guests {
			group.Go(func() { statuses[i] = s.attempt(ctx, client, body) })
		}
		group.Wait()
		times = append(times, time.Since(began))
		if i := slices.IndexFunc(statuses, func(status int) bool { return status != http.StatusCreated }); i >= 0 {
			return fmt.Errorf("%w: a client that joins a departure with free seats gets %d", errResult, statuses[i])
		}
	}
	slices.Sort(times)
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("%d clients join one departure at the same time, until all get a response: p50 of %d times", guests, len(times)),
		Value:  report.Milliseconds(times[len(times)/2]), Show: "joins",
	})
	return nil
}

// addSharedUnit adds the unit whose bookings share departures of four hours, the first at midnight.
func (s *shop) addSharedUnit(ctx context.Context) error {
	_, err := s.admin.Exec(ctx, `
		with u as (
			insert into units (tenant_id, livemode, id, name, booking_mode, capacity) values ($1, false, $2, 'Bench tour', 'seats', $3)
			on conflict do nothing returning id)
		insert into unit_services (tenant_id, livemode, unit_id, service_id)
			select $1, false, u.id, p.service_id from u, packages p where p.tenant_id = $1 and not p.livemode and p.id = $4`,
		s.tenant, unitUUID(sharedUnit), departureSeats, s.packUUID)
	if err != nil {
		return fmt.Errorf("add a shared unit: %w", err)
	}
	return nil
}

func (s *shop) joinBody(day time.Time) string {
	return fmt.Sprintf(`{"customer_id":%q,"package_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":"00:00",`+
		`"event_type":"Team outing","guest_count":1,"notes":"Vegetarian lunch for two."}`,
		s.customer, s.pack, ids.FromUUID[unitPrefix](unitUUID(sharedUnit)), day.Format(time.DateOnly))
}

// join creates one booking of the shared unit and returns its id.
func (s *shop) join(ctx context.Context, key string, day time.Time) (string, error) {
	var created struct {
		ID string `json:"id"`
	}
	err := s.post(ctx, "/bookings", key, s.joinBody(day), &created)
	return created.ID, err
}
