package seed

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

type customer struct {
	ID        string `json:"id,omitempty"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Email     string `json:"email,omitempty"`
	Phone     string `json:"phone,omitempty"`
	Company   string `json:"company,omitempty"`
}

var customers = []customer{
	{FirstName: "Ada", LastName: "Harbour", Email: "ada@harbour.example", Phone: "+1 212 555 0101"},
	{FirstName: "Ben", LastName: "Okafor", Email: "ben.okafor@example.com", Phone: "+1 212 555 0102"},
	{FirstName: "Chloé", LastName: "Martin", Email: "chloe@atelier.example", Company: "Atelier Martin"},
	{FirstName: "Daniel", LastName: "Reyes", Email: "daniel.reyes@example.com"},
	{FirstName: "Emi", LastName: "Tanaka", Email: "emi@tanaka.example", Company: "Tanaka Events"},
	{FirstName: "Farid", LastName: "Nasser", Phone: "+1 212 555 0106"}, // has no email address
}

type pack struct {
	ID          string   `json:"id"`
	ServiceID   string   `json:"service_id"`
	DepositType string   `json:"deposit_type"`
	Duration    *int     `json:"duration_minutes"`
	UnitIDs     []string `json:"unit_ids"`
	Active      bool     `json:"active"`
}

type unit struct {
	ID         string   `json:"id"`
	ServiceIDs []string `json:"service_ids"`
	Status     string   `json:"status"`
	Mode       string   `json:"booking_mode"`
}

// booking is the part of a booking's input that seeding uses.
type booking struct {
	CustomerID string `json:"customer_id,omitempty"`
	PackageID  string `json:"package_id"`
	UnitID     string `json:"unit_id"`
	Date       string `json:"event_date"`
	Start      string `json:"event_start_time"`
	End        string `json:"event_end_time,omitempty"`
	Type       string `json:"event_type,omitempty"`
	Status     string `json:"status,omitempty"`
	Guests     int    `json:"guest_count,omitempty"`

	shared bool // the unit is booked by the seat
}

// Suggestion is a booking with a deposit that can be created now.
type Suggestion struct{ PackageID, UnitID, Date, Start, End string }

// fill creates the missing customers. If there are no bookings, it also creates some. It returns a booking that can still be
// created.
func (c *client) fill(ctx context.Context, t tenant) (*Suggestion, error) {
	ids, err := c.customers(ctx)
	if err != nil {
		return nil, fmt.Errorf("seeding customers: %w", err)
	}
	offers, err := c.offers(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	if len(offers) == 0 {
		return nil, nil // An empty catalogue offers no bookings.
	}
	zone, err := time.LoadLocation(t.timezone)
	if err != nil {
		return nil, err
	}
	today := time.Now().In(zone)
	if err := c.bookings(ctx, ids, offers, today); err != nil {
		return nil, fmt.Errorf("seeding bookings: %w", err)
	}
	if err := c.closure(ctx, today); err != nil {
		return nil, fmt.Errorf("seeding a closure: %w", err)
	}
	if err := c.chain(ctx, ids, t.currency, today); err != nil {
		return nil, fmt.Errorf("seeding leads, quotes and invoices: %w", err)
	}
	return c.suggest(ctx, offers, today)
}

// customers returns the ids of all seeded customers.
func (c *client) customers(ctx context.Context) ([]string, error) {
	ids := make([]string, len(customers))
	for i, want := range customers {
		filter := url.Values{"email": {want.Email}}
		if want.Email == "" {
			filter = url.Values{"phone": {want.Phone}}
		}
		found, err := list[customer](ctx, c, "/customers?"+filter.Encode())
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			var created customer
			if err := c.call(ctx, http.MethodPost, "/customers", want, &created); err != nil {
				return nil, err
			}
			found = append(found, created)
		}
		ids[i] = found[0].ID
	}
	return ids, nil
}

// offers pairs each package with a unit on which it can be booked. Packages with a deposit come first.
func (c *client) offers(ctx context.Context) ([]booking, error) {
	packs, err := list[pack](ctx, c, "/packages?limit=100")
	if err != nil {
		return nil, err
	}
	units, err := list[unit](ctx, c, "/units?limit=100")
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(packs, func(a, b pack) int { return depositRank(a) - depositRank(b) })
	var offers []booking
	for _, p := range packs {
		at := slices.IndexFunc(units, func(u unit) bool { return u.Status == "active" && p.bookableOn(u) })
		if !p.Active || at < 0 {
			continue
		}
		b := booking{PackageID: p.ID, UnitID: units[at].ID, Start: "10:00", shared: units[at].Mode == "seats"}
		if p.Duration == nil {
			b.End = "14:00"
		}
		offers = append(offers, b)
	}
	return offers, nil
}

func (p pack) bookableOn(u unit) bool {
	if len(p.UnitIDs) > 0 {
		return slices.Contains(p.UnitIDs, u.ID)
	}
	return slices.Contains(u.ServiceIDs, p.ServiceID)
}

func depositRank(p pack) int {
	return slices.Index([]string{"percentage", "flat", "none"}, p.DepositType)
}

var occasions = []string{"Birthday", "Team outing", "Wedding", "Sunset trip", "Photo shoot", "Anniversary"}

// bookings creates a few bookings if there are none: one every third day from next week on, so that no two overlap.
func (c *client) bookings(ctx context.Context, customers []string, offers []booking, today time.Time) error {
	there, err := list[booking](ctx, c, "/bookings?limit=1")
	if err != nil || len(there) > 0 {
		return err
	}
	for i, occasion := range occasions {
		b := offers[i%len(offers)]
		b.CustomerID, b.Type, b.Guests = customers[i%len(customers)], occasion, 2+i%4
		b.Date = today.AddDate(0, 0, 7+3*i).Format(time.DateOnly)
		if i%2 == 0 {
			b.Status = "confirmed"
		}
		if err := c.call(ctx, http.MethodPost, "/bookings", b, nil); err != nil {
			return err
		}
	}
	return c.departures(ctx, customers, offers, today)
}

// departures creates bookings that share a slot of each unit that is booked by the seat. A few seats stay free.
func (c *client) departures(ctx context.Context, customers []string, offers []booking, today time.Time) error {
	for _, b := range offers {
		if !b.shared {
			continue
		}
		b.Date = today.AddDate(0, 0, 5).Format(time.DateOnly)
		for i, status := range []string{"confirmed", "confirmed", "pending"} {
			b.CustomerID, b.Guests, b.Status = customers[i%len(customers)], 1+i, status
			if err := c.call(ctx, http.MethodPost, "/bookings", b, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// closure closes a day of next week, on which there are no bookings, if there are no closures.
func (c *client) closure(ctx context.Context, today time.Time) error {
	there, err := list[struct{}](ctx, c, "/closures?limit=1")
	if err != nil || len(there) > 0 {
		return err
	}
	day := today.AddDate(0, 0, 8).Format(time.DateOnly)
	return c.call(ctx, http.MethodPost, "/closures", map[string]string{"name": "Staff training", "date_from": day, "date_to": day}, nil)
}

// suggest finds a day, a month ahead or later, on which the first offer's unit has no booking.
func (c *client) suggest(ctx context.Context, offers []booking, today time.Time) (*Suggestion, error) {
	o := offers[0]
	from := today.AddDate(0, 1, 0)
	query := url.Values{"unit_id": {o.UnitID}, "event_date_from": {from.Format(time.DateOnly)}, "limit": {"100"}}
	taken, err := list[struct {
		StartsAt time.Time `json:"starts_at"`
	}](ctx, c, "/bookings?"+query.Encode())
	if err != nil {
		return nil, err
	}
	busy := map[string]bool{}
	for _, b := range taken {
		busy[b.StartsAt.In(today.Location()).Format(time.DateOnly)] = true
	}
	day := from
	for busy[day.Format(time.DateOnly)] {
		day = day.AddDate(0, 0, 1)
	}
	return &Suggestion{PackageID: o.PackageID, UnitID: o.UnitID, Date: day.Format(time.DateOnly), Start: o.Start, End: o.End}, nil
}
