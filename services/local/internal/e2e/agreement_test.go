package e2e

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
)

// rows returns the values of a text column of a service's database. It leaves no connection open, because the server is killed.
func (p *platform) rows(t *testing.T, service, sql string, args ...any) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), strings.Replace(p.env["POSTGRES_URL"], "/postgres?", "/holdfast_"+service+"?", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	return rows(t, conn, sql, args...)
}

// differences compares the databases with each other and with Stripe, independently of the command repair. An entry that one side has
// more often than the other is a difference too.
func (p *platform) differences(t *testing.T) (found []string) {
	t.Helper()
	in := func(service, sql string) []string { return p.rows(t, service, sql) }
	compare := func(what string, owner, copies []string) {
		count := map[string]int{}
		for _, one := range owner {
			count[one]++
		}
		for _, one := range copies {
			count[one]--
		}
		for one, n := range count {
			switch {
			case n > 0:
				found = append(found, what+" lacks "+one)
			case n < 0:
				found = append(found, what+" has "+one)
			}
		}
	}
	bookings := in("bookings", `select id || ' ' || status || ' ' || version from bookings`)
	compare("customers: bookings", bookings, in("customers", `select id || ' ' || status || ' ' || version from bookings`))
	compare("payments: bookings", bookings, in("payments", `select id || ' ' || status || ' ' || version from bookings`))
	compare("bookings: customers", in("customers", `select id || ' ' || version from customers where erased_at is null`),
		in("bookings", `select id || ' ' || version from customers where version > 0 and not erased`))
	exist := map[string]string{} // versions by id
	for _, one := range in("bookings", `select id || ' ' || version from bookings`) {
		id, version, _ := strings.Cut(one, " ")
		exist[id] = version
	}
	ofBookings := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(one string) bool { id, _, _ := strings.Cut(one, " "); return exist[id] == "" })
	}
	charges := in("payments", `select booking_id || ' ' || gateway_id || ' ' || received || ' ' || refunded + lost from payment_intents where received > 0`)
	compare("customers: charges", charges, in("customers", `select booking_id || ' ' || id || ' ' || amount || ' ' || refunded from charges where method = 'card'`))
	compare("bookings: charges", ofBookings(charges), in("bookings",
		`select booking_id || ' ' || payment_id || ' ' || amount || ' ' || refunded from booking_payments where source = 'gateway'`))
	compare("customers: accounts", in("payments", `select id || ' ' || currency || ' ' || received || ' ' || version from money_accounts where version > 0`),
		in("customers", `select a.id || ' ' || a.currency || ' ' || (select coalesce(sum(c.amount), 0) from charges c
			where (c.tenant_id, c.livemode, c.booking_id, c.currency) = (a.tenant_id, a.livemode, a.id, a.currency)) || ' ' || a.version
			from money_accounts a where a.version > 0`))
	accounts := ofBookings(in("payments", `select id || ' ' || received || ' ' || returned || ' ' || version from money_accounts
		where kind = 'booking' and version > 0`))
	compare("bookings: accounts", accounts, in("bookings", `select id || ' ' || paid || ' ' || refunded || ' ' || account_version from bookings where account_version > 0`))
	compare("bookings: payments", accounts, in("bookings", `select b.id || ' ' || coalesce(sum(p.amount) filter (where p.reversed_at is null), 0) || ' ' || sum(p.refunded) || ' ' ||
		b.account_version from bookings b join booking_payments p on p.booking_id = b.id and p.currency = b.currency group by b.id, b.account_version`))
	compare("bookings: invoices", ofBookings(in("customers", `select booking_id || ' ' || version from invoices where booking_id is not null`)),
		in("bookings", `select booking_id || ' ' || version from booking_invoices where booking_id is not null`))
	found = append(found, in("bookings", `select 'paid twice: ' || id from bookings where paid > total`)...)
	if p.pid("stripe") > 0 && syscall.Kill(p.pid("stripe"), 0) == nil { // it runs with the services
		var atStripe []string
		for _, c := range p.charges(t) {
			if c.Received > 0 && c.Metadata["booking_id"] != "" {
				_, booking := ids.Stored(c.Metadata["booking_id"])
				atStripe = append(atStripe, booking+" "+c.ID+" "+strconv.FormatInt(c.Received, 10)+" 0")
			}
		}
		compare("payments: Stripe", atStripe, in("payments", `select p.booking_id || ' ' || p.gateway_id || ' ' || p.received || ' ' || p.refunded
			from payment_intents p join gateway_accounts a on a.id = p.account_id where p.received > 0 and a.disconnected_at is null`))
	}
	for _, one := range in("webhooks", `select object_id || ' ' || max((convert_from(body, 'UTF8')::json->>'resource_version')::int) from events
		where object_id like 'bk\_%' group by object_id`) {
		object, version, _ := strings.Cut(one, " ")
		if _, id := ids.Stored(object); exist[id] == version {
			delete(exist, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(exist)) {
		found = append(found, "log: version "+exist[id]+" of "+id)
	}
	return found
}
