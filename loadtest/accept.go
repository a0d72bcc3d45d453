package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/record"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/sqlbench"
)

// The units of the quotes that are accepted. acceptUnit returns the SQL of the id of a number's unit.
const acceptUnits = "fd000000-0000-7000-8000-"

func acceptUnit(number string) string {
	return fmt.Sprintf(`('%s' || lpad(to_hex(%s), 12, '0'))::uuid`, acceptUnits, number)
}

// pgbench writes ids with these prefixes, followed by a number.
const (
	bareInvoice = "ffffffff-0003-7000-8000-"
	bareEvent   = "ffffffff-0004-7000-8000-" // and 0002, of the quote
	bareLinked  = "ffffffff-0005-7000-8000-"
	bareQuote   = "ffffffff-0006-7000-8000-"
)

// bareID returns the SQL of the id of :n.
func bareID(prefix string) string {
	return `('` + prefix + `' || lpad(to_hex((:n)::bigint), 12, '0'))::uuid`
}

// acceptance holds the data for the comparison of accepts.
type acceptance struct {
	*chain
	operator *operator
	bookings *pgx.Conn // in the bookings database
	app      string    // URL of that database with the service's own role
}

// accept compares POST /quotes/{id}/accept with the statements that it sends to both databases, in pgbench. pgbench runs the
// statements of one database after those of the other, so an accept's time is the sum of both.
func (b *bench) accept(ctx context.Context, c *chain) error {
	a, err := b.openAcceptance(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = a.bookings.Close(context.WithoutCancel(ctx)) }()
	if err := b.sentQuotes(ctx, a); err != nil {
		return err
	}
	ours := &served{name: "POST /quotes/{id}/accept", target: c.target(func(n int) []byte { return a.request(rowOf[ids.QuotePrefix](n+1), fmt.Sprint(n)) })}
	if _, err := ours.send(ctx, connections, warmUp); err != nil {
		return err
	}
	same, err := b.acceptScripts(ctx, a)
	if err != nil {
		return err
	}
	if err := b.alternate(ctx, b.serve(ctx, ours), same.quotes, same.bookings); err != nil {
		return err
	}
	if err := errors.Join(b.enough(ours.name, ours.next), b.enough("pgbench, "+ours.name, same.quotes.rows)); err != nil {
		return err
	}
	row := same.row("`POST /quotes/{id}/accept` with Idempotency-Key, at the service", ours.Rate())
	row.Aim = report.Aim{Text: "≥ 50 %", Value: row.Ratio, Least: 0.5}
	b.table.Add(row)
	all := perRequest(ours.used.platform(), ours.Requests)
	b.table.Add(report.Row{Figure: "`POST /quotes/{id}/accept`: CPU time of all processes", Value: all, Aim: report.AtMost(all, 8), Show: "accept"})
	b.noteCosts(ours, same.quotes, same.bookings)
	return nil
}

// sides are the two parts of an accept in pgbench.
type sides struct{ quotes, bookings *replayed }

// row compares a rate with that of both parts, one after the other.
func (s sides) row(figure string, ours float64) report.Row {
	both := report.Ratio(1, report.Ratio(1, s.quotes.Rate())+report.Ratio(1, s.bookings.Rate()))
	return report.Row{
		Figure: figure, Value: report.PerSecond(ours),
		Baseline: fmt.Sprintf("pgbench: %.0f/s (customers' part %.0f/s, bookings' part %.0f/s)", both, s.quotes.Rate(), s.bookings.Rate()),
		Ratio:    report.Ratio(ours, both), Show: "accept",
	}
}

func (b *bench) openAcceptance(ctx context.Context, c *chain) (*acceptance, error) {
	settings, err := b.platform.Settings("bookings")
	if err != nil {
		return nil, err
	}
	a := &acceptance{chain: c, app: settings["DATABASE_URL"]}
	if a.operator, err = c.as(ctx, c.key); err != nil {
		return nil, err
	}
	if a.bookings, err = b.platform.Admin(ctx, a.app); err != nil {
		return nil, err
	}
	_, err = a.bookings.Exec(ctx, `insert into units (tenant_id, livemode, id, name)
		select $1, false, `+acceptUnit("n")+`, 'Accept ' || n from generate_series(0, $2::int) n`, a.operator.tenant.UUID(), units-1)
	return a, err
}

func (a *acceptance) request(quote, key string) []byte {
	return a.operator.request(http.MethodPost, "/quotes/"+quote+"/accept", "accept-"+key)
}

// newQuote creates a sent quote for the first unit on a day and returns its id.
func (a *acceptance) newQuote(ctx context.Context, day time.Time) (string, error) {
	unit, err := ids.Parse[unitPrefix](ids.FromUUID[unitPrefix](acceptUnitUUID).String())
	if err != nil {
		return "", err
	}
	id, err := a.create(ctx, a.key, "/quotes", fmt.Sprintf(`{"customer_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":"10:00",`+
		`"event_end_time":"14:00","line_items":[%s],"deposit_amount":{"amount":20000,"currency":"USD"}}`,
		a.customer, unit, day.Format(time.DateOnly), invoiceLine))
	if err != nil {
		return "", err
	}
	send := load.Request(http.MethodPost, "/api/v1/quotes/"+id+"/send", a.headers(a.key, ""), "")
	return id, a.call(ctx, send, http.StatusOK, &struct{}{})
}

// sentQuotes creates the quotes that the service accepts, each with its own slot, and the same number for pgbench.
func (b *bench) sentQuotes(ctx context.Context, a *acceptance) error {
	template, err := a.newQuote(ctx, recordedDay.AddDate(-1, 0, 0))
	if err != nil {
		return err
	}
	id, err := ids.Parse[ids.QuotePrefix](template)
	if err != nil {
		return err
	}
	own := copied(map[string]string{
		"number": "'L-' || n", "unit_id": acceptUnit(fmt.Sprintf("n %% %d", units)),
		"event_day": fmt.Sprintf("date '%s' + n / %d", firstDay.Format(time.DateOnly), units),
	})
	if err := bulk.Copy(ctx, a.db, bulk.Template{Table: "quotes", ID: id.UUID()}, 1, 2*b.spare(), own); err != nil {
		return err
	}
	return bulk.VacuumAndCheckpoint(ctx, a.db, "quotes")
}

// acceptScripts records one accept in both services and creates a script from each part. An attempt whose recording contains
// anything else is repeated.
func (b *bench) acceptScripts(ctx context.Context, a *acceptance) (same sides, err error) {
	for try := range 5 {
		same, err = b.recordAccept(ctx, a, try)
		if !errors.Is(err, errTrips) && !errors.Is(err, errNumbers) {
			break
		}
	}
	return same, err
}

// errNumbers reports that the recorded request reserved numbers for the next ones, as one in sixteen does.
var errNumbers = errors.New("the recorded request has reserved booking numbers")

func (b *bench) recordAccept(ctx context.Context, a *acceptance, try int) (same sides, err error) {
	quote, err := a.newQuote(ctx, recordedOn(try))
	if err != nil {
		return same, err
	}
	var body []byte
	customers := &record.Recording{Service: "customers", Route: "/quotes/{id}/accept"}
	booked := &record.Recording{Service: "bookings", Route: "/internal/v1/bookings"}
	key := fmt.Sprintf("recorded-%d", try)
	err = record.All(ctx, b.platform, a.db, func() error {
		var err error
		body, err = load.Once(ctx, a.target(func(int) []byte { return a.request(quote, key) }))
		return err
	}, customers, booked)
	if err != nil {
		return same, err
	}
	if reservesNumbers(booked) {
		return same, errNumbers
	}
	v, err := a.vary(ctx, quote, "accept-"+key, body, b.spare())
	if err != nil {
		return same, err
	}
	same.quotes = &replayed{url: a.chain.app, start: a.free("invoices", bareInvoice)}
	if same.quotes.script, err = b.script("accept-customers", customers, v.quotes, beginsAcceptTrip); err != nil {
		return same, err
	}
	same.bookings = &replayed{url: a.app, start: a.free("bookings", bareLinked)}
	same.bookings.script, err = b.script("accept-bookings", booked, v.bookings, beginsTrip)
	return same, err
}

// free returns a start of :i for which :n is larger than in every earlier row of pgbench.
func (a *acceptance) free(table, prefix string) func(ctx context.Context, db *pgx.Conn) (int, error) {
	return func(ctx context.Context, db *pgx.Conn) (int, error) {
		return nextBare(ctx, db, table, a.operator.tenant.UUID(), prefix)
	}
}

// variations describes the differences between two accepts.
type variations struct{ quotes, bookings sqlbench.Vary }

// vary returns the differences between recorded statements: ids, numbers, key, slot, and the time until which the accept reserves
// its quote. A completer must never find this time expired. pgbench's quotes follow after the first `spare`.
func (a *acceptance) vary(ctx context.Context, quote, key string, body []byte, spare int) (v variations, err error) {
	var accepted struct {
		Booking  ids.ID[bookingPrefix]       `json:"booking_id"`
		Invoices []ids.ID[ids.InvoicePrefix] `json:"invoice_ids"`
	}
	if err := json.Unmarshal(body, &accepted); err != nil || len(accepted.Invoices) != 1 {
		return v, fmt.Errorf("%w: accept returned %.300s: %w", record.ErrRecord, body, err)
	}
	id, err := ids.Parse[ids.QuotePrefix](quote)
	if err != nil {
		return v, err
	}
	booking, invoice := accepted.Booking, accepted.Invoices[0]
	var number string
	if err := a.bookings.QueryRow(ctx, "select number from bookings where id = $1", booking.UUID()).Scan(&number); err != nil {
		return v, err
	}
	v.quotes = sqlbench.Vary{
		Setup: []string{fmt.Sprintf("\\set r :n %% %d + %d", spare, spare+1)},
		Values: map[string]string{
			uuidText(id.UUID()): rowSQL, uuidText(invoice.UUID()): bareID(bareInvoice), uuidText(booking.UUID()): bareID(bareLinked),
			quote: `('qt_' || (:n)::bigint)`, invoice.String(): `('inv_' || (:n)::bigint)`, key: `('pgbench-' || (:n)::bigint)`,
		},
		Special: func(st sqlbench.Statement, i int) string {
			if strings.HasPrefix(st.SQL, "update quotes set accept_attempt") && (i == 2 || i == 3) {
				return `(now() + interval '1 hour')`
			}
			return event(st, i)
		},
	}
	v.bookings = sqlbench.Vary{
		Setup: []string{fmt.Sprintf("\\set u :n %% %d", units), fmt.Sprintf("\\set d :n / %d + 1", units)},
		Values: map[string]string{
			uuidText(id.UUID()): bareID(bareQuote), uuidText(booking.UUID()): bareID(bareLinked), uuidText(acceptUnitUUID): acceptUnit("(:u)::bigint"),
			booking.String(): `('bk_' || (:n)::bigint)`, number: `('A-' || (:n)::bigint)`,
		},
		Special: func(st sqlbench.Statement, i int) string {
			if day := laterDay(st.Params[i-1].Text); day != "" {
				return day
			}
			return event(st, i)
		},
	}
	return v, nil
}

// acceptUnitUUID is the first unit's id.
var acceptUnitUUID = [16]byte{0: 0xfd, 6: 0x70, 8: 0x80}

// event assigns each event its own id.
func event(st sqlbench.Statement, i int) string {
	switch {
	case !strings.HasPrefix(st.SQL, "insert into outbox") || i != 3:
		return ""
	case strings.HasPrefix(st.Params[4].Text, "inv_"):
		return bareID(bareEvent)
	default:
		return fmt.Sprintf(bareSQL, "0002")
	}
}

// beginsAcceptTrip is beginsTrip for the statements that customers sends for an accept.
func beginsAcceptTrip(before, s sqlbench.Statement) bool {
	after := func(start string) bool { return strings.HasPrefix(before.SQL, start) }
	is := func(start string) bool { return strings.HasPrefix(s.SQL, start) }
	switch {
	case is("select set_config"):
		return !after("begin")
	case is("insert into outbox"):
		return !after("insert into outbox")
	case is("with counter"):
		return !after("select pg_advisory_xact_lock")
	case is("select pg_advisory_xact_lock"):
		return !is("select pg_advisory_xact_lock(hashtextextended('idempotency key'") && !after("insert into bookings")
	case is("select q."):
		return after("insert into idempotency_keys")
	case is("begin"), is("select b."), is("update quotes"), is("select c."):
		return true
	default:
		return false
	}
}
