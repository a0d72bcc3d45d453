package availability_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

// world is an operator with a few units and their bookings.
type world struct {
	availability.Catalogue
	availability.Operator
	availability.Query
	claims []availability.Claim
}

// changes contains ranges with each kind of clock change.
var changes = []struct{ zone, from, to, now string }{
	{"America/New_York", "2026-03-07", "2026-03-09", "2026-03-08T06:30:00Z"},
	{"America/New_York", "2026-10-31", "2026-11-02", "2026-11-01T05:45:00Z"},
	{"America/Santiago", "2026-09-05", "2026-09-07", "2026-09-06T04:00:00Z"},
	{"America/Santiago", "2026-04-04", "2026-04-06", "2026-04-05T03:30:00Z"},
	{"Australia/Lord_Howe", "2026-10-03", "2026-10-05", "2026-10-03T15:30:00Z"},
	{"Pacific/Apia", "2011-12-29", "2011-12-31", "2011-12-30T10:00:00Z"},
	{"America/St_Johns", "2010-11-06", "2010-11-08", "2010-11-07T02:40:00Z"}, // falls back from 00:01 into the day before
	{"UTC", "2026-05-10", "2026-05-12", "2026-05-11T12:00:00Z"},
}

func worlds() *rapid.Generator[world] {
	return rapid.Custom(func(t *rapid.T) world {
		at := rapid.SampledFrom(changes).Draw(t, "zone")
		w := world{
			Operator: availability.Operator{Loc: zone(t, at.zone), Now: instant(at.now)},
			Query:    availability.Query{Range: days(at.from, at.to)},
		}
		maybe := func(name string, low, high int) *int {
			if n := rapid.IntRange(low-1, high).Draw(t, name); n >= low {
				return &n
			}
			return nil
		}
		w.Policy = domain.Policy{MinNoticeMinutes: maybe("notice", 0, 300), MaxAdvanceDays: maybe("advance", 0, 2)}
		for range rapid.IntRange(0, 3).Draw(t, "services") {
			s := tour(maybe("duration", 5, 300), buffers(rapid.IntRange(0, 40).Draw(t, "before"), rapid.IntRange(0, 40).Draw(t, "after")))
			s.SlotStepMinutes = maybe("step", 5, 90)
			s.Active = rapid.IntRange(0, 4).Draw(t, "inactive") > 0
			w.Services = append(w.Services, s)
		}
		for range rapid.IntRange(1, 2).Draw(t, "units") {
			u := boat(drawHours(t))
			u.Status = rapid.SampledFrom([]domain.UnitStatus{domain.UnitActive, domain.UnitActive, domain.UnitActive, domain.UnitMaintenance, domain.UnitRetired}).Draw(t, "status")
			for i := range w.Services {
				if rapid.Bool().Draw(t, "linked") {
					u.ServiceIDs = append(u.ServiceIDs, w.Services[i].ID)
					w.Services[i].UnitIDs = append(w.Services[i].UnitIDs, u.ID)
				}
			}
			w.Units = append(w.Units, u)
		}
		for _, s := range w.Services {
			p := pack(s, 100)
			p.DurationMinutes = maybe("package duration", 5, 300)
			w.Packages = append(w.Packages, p)
		}
		w.claims, w.Closures = drawClaims(t, w), drawClosures(t, w)
		return w
	})
}

func drawHours(t *rapid.T) domain.OpeningHours {
	if rapid.Bool().Draw(t, "always") {
		return nil
	}
	hours := domain.OpeningHours{}
	clocks := []civil.Clock{"00:00", "00:30", "01:30", "02:15", "02:30", "03:00", "09:00", "14:00", "22:00", "23:30"}
	for day := time.Sunday; day <= time.Saturday; day++ {
		if rapid.IntRange(0, 3).Draw(t, "closed") == 0 {
			continue
		}
		hours[day] = []domain.Opening{{Open: rapid.SampledFrom(clocks).Draw(t, "open"), Close: rapid.SampledFrom(append(clocks, domain.Midnight)).Draw(t, "close")}}
	}
	return hours
}

// drawClaims draws arbitrary claims, including overlapping ones, because the result does not depend on the constraint.
func drawClaims(t *rapid.T, w world) []availability.Claim {
	window := w.Window(w.Loc)
	length := int(window.To.Sub(window.From) / time.Minute)
	var claims []availability.Claim
	for range rapid.IntRange(0, 6).Draw(t, "claims") {
		from := window.From.Add(time.Duration(rapid.IntRange(0, length).Draw(t, "from")) * time.Minute)
		c := availability.Claim{
			Span:   domain.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "length")) * time.Minute)},
			Unit:   rapid.SampledFrom(w.Units).Draw(t, "unit").ID,
			Status: rapid.SampledFrom([]domain.Status{domain.Pending, domain.Confirmed}).Draw(t, "status"),
		}
		if rapid.Bool().Draw(t, "hold") {
			at := w.Now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "expires")) * time.Second)
			c.HoldExpiresAt = &at
		}
		claims = append(claims, c)
	}
	return claims
}

// drawClosures draws closures of all units and of one.
func drawClosures(t *rapid.T, w world) (list []availability.Closure) {
	window := w.Window(w.Loc)
	length := int(window.To.Sub(window.From) / time.Minute)
	for range rapid.IntRange(0, 3).Draw(t, "closures") {
		from := window.From.Add(time.Duration(rapid.IntRange(0, length).Draw(t, "closed from")) * time.Minute)
		c := availability.Closure{Span: domain.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "closed for")) * time.Minute)}}
		if rapid.Bool().Draw(t, "of one unit") {
			c.Units = []domain.UnitID{rapid.SampledFrom(w.Units).Draw(t, "closed unit").ID}
		}
		list = append(list, c)
	}
	return list
}

// narrowed draws the ids that a client may request.
func narrowed(t *rapid.T, w world) availability.Query {
	q := w.Query
	if len(w.Services) > 0 && rapid.Bool().Draw(t, "by service") {
		q.Service = new(rapid.SampledFrom(w.Services).Draw(t, "service").ID)
	}
	if len(w.Packages) > 0 && rapid.IntRange(0, 3).Draw(t, "by package") == 0 {
		q.Package = new(rapid.SampledFrom(w.Packages).Draw(t, "package").ID)
	}
	return q
}

// TestOfferedIsBookable checks that a slot is offered exactly when a booking of it is accepted by the rules and by the claims.
func TestOfferedIsBookable(t *testing.T) {
	t.Parallel()
	seen := map[availability.SlotStatus]int{}
	check := func(t *rapid.T) {
		w := worlds().Draw(t, "world")
		q := narrowed(t, w)
		got, err := allDays(q, w.Catalogue, w.claims, w.Operator)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range got {
			for _, u := range d.Units {
				for _, s := range u.Slots {
					seen[s.Status]++
					refused := w.book(q, *u.Unit, s.Span)
					if (refused == nil) != (s.Status == availability.SlotAvailable) {
						t.Fatalf("%s %v is %s, and a booking gets %v", u.Unit.ID, s.Span, s.Status, refused)
					}
				}
			}
		}
	}
	all := []availability.SlotStatus{availability.SlotAvailable, availability.SlotBlocked, availability.SlotBooked, availability.SlotHeld}
	unseen := func(s availability.SlotStatus) bool { return seen[s] == 0 }
	for range 30 { // a few hundred worlds show every status; one hundred do so nearly always
		if rapid.Check(t, check); t.Failed() || !slices.ContainsFunc(all, unseen) {
			return
		}
	}
	t.Errorf("not every status was seen: %v", seen)
}

// book creates the booking of a slot by its instants, and returns the error if that is not possible.
func (w world) book(q availability.Query, u domain.Unit, s domain.Span) error {
	input := domain.BookingInput{
		StartsAt: given(s.From.Format(time.RFC3339Nano)), EndsAt: given(s.To.Format(time.RFC3339Nano)), UnitID: given(u.ID.String()),
	}
	refs := domain.Refs{Unit: &u}
	for i := range w.Packages {
		if q.Package != nil && w.Packages[i].ID == *q.Package {
			refs.Package = &w.Packages[i]
			input.PackageID = given(q.Package.String())
		}
	}
	if refs.Service = w.service(q, u, refs.Package); refs.Service != nil {
		input.ServiceID = given(refs.Service.ID.String())
	}
	when, err := input.When(w.Loc)
	if err != nil {
		return err
	}
	b, err := domain.New(input, when, refs, w.Policy, domain.Booking{Loc: w.Loc}, w.Now)
	if err != nil {
		return err
	}
	if w.inClosure(u, domain.Span{From: *b.StartsAt, To: *b.EndsAt}) {
		return domain.ErrClosed
	}
	from, to, _ := b.Claim(refs.Service)
	for _, c := range w.claims {
		lapsed := c.Status == domain.Pending && c.HoldExpiresAt != nil && !c.HoldExpiresAt.After(w.Now)
		if c.Unit == u.ID && !lapsed && c.From.Before(to) && from.Before(c.To) {
			return domain.ErrSlotUnavailable
		}
	}
	return nil
}

// inClosure compares a time with every closure.
func (w world) inClosure(u domain.Unit, s domain.Span) bool {
	return slices.ContainsFunc(w.Closures, func(c availability.Closure) bool {
		return c.Overlaps(s) && (c.Units == nil || slices.Contains(c.Units, u.ID))
	})
}

// service returns the service that a client books: the package's, the requested one, or the shortest.
func (w world) service(q availability.Query, u domain.Unit, p *domain.Package) *domain.Service {
	var fits []domain.Service
	for _, s := range w.Services {
		switch {
		case p != nil && s.ID == p.ServiceID, p == nil && q.Service != nil && s.ID == *q.Service:
			return &s
		case s.Active && u.Serves(s):
			fits = append(fits, s)
		}
	}
	if len(fits) == 0 || p != nil || q.Service != nil {
		return nil
	}
	key := func(s domain.Service) string {
		n := 1_000_000
		if s.DurationMinutes != nil {
			n = *s.DurationMinutes
		}
		return fmt.Sprintf("%09d %s", n, s.ID)
	}
	slices.SortFunc(fits, func(a, b domain.Service) int {
		if key(a) < key(b) {
			return -1
		}
		return 1
	})
	return &fits[0]
}

// TestSweepIsNaive checks that the result equals that of comparing every claim with every slot.
func TestSweepIsNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := worlds().Draw(t, "world")
		w.Policy = domain.Policy{}
		got, err := allDays(w.Query, w.Catalogue, w.claims, w.Operator)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(w.claims) // their order does not matter
		again, err := allDays(w.Query, w.Catalogue, w.claims, w.Operator)
		if err != nil {
			t.Fatal(err)
		}
		for n, d := range got {
			for i, u := range d.Units {
				for k, s := range u.Slots {
					if want := w.naive(*u.Unit, s.Span); s.Status != want || again[n].Units[i].Slots[k] != s {
						t.Fatalf("%v is %s, want %s", s.Span, s.Status, want)
					}
				}
			}
		}
	})
}

func (w world) naive(u domain.Unit, s domain.Span) availability.SlotStatus {
	if u.Status != domain.UnitActive || w.inClosure(u, s) {
		return availability.SlotBlocked
	}
	status := availability.SlotAvailable
	service := w.service(w.Query, u, nil)
	for _, c := range w.claims {
		from, to := s.From, s.To
		if service != nil {
			from = from.Add(-time.Duration(service.BufferBeforeMinutes) * time.Minute)
			to = to.Add(time.Duration(service.BufferAfterMinutes) * time.Minute)
		}
		if c.Unit != u.ID || !c.From.Before(to) || !from.Before(c.To) {
			continue
		}
		if c.Status == domain.Confirmed {
			return availability.SlotBooked
		}
		if c.HoldExpiresAt == nil || c.HoldExpiresAt.After(w.Now) {
			status = availability.SlotHeld
		}
	}
	return status
}

// TestSlotsFillOpenings checks that slots begin within an opening of their day, one step apart, and end within it, or on the next
// day if the unit is always open. As many slots are offered as fit.
func TestSlotsFillOpenings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := worlds().Draw(t, "world")
		got, err := allDays(w.Query, w.Catalogue, nil, w.Operator)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range got {
			for _, u := range d.Units {
				var want []domain.Span
				s := w.service(w.Query, *u.Unit, nil)
				for _, o := range u.Unit.OpeningHours.On(d.Date, w.Loc) {
					until := o.To
					if u.Unit.OpeningHours == nil {
						until = d.Date.AddDays(1).End(w.Loc)
					}
					want = append(want, within(o, until, s)...)
				}
				if len(want) != len(u.Slots) {
					t.Fatalf("%s: %d slots, want %d", d.Date, len(u.Slots), len(want))
				}
				for i, s := range u.Slots {
					if s.Span != want[i] {
						t.Fatalf("%s: %v, want %v", d.Date, s.Span, want[i])
					}
				}
			}
		}
	})
}

// within divides an opening, minute by minute, into the spans that end before until.
func within(o domain.Span, until time.Time, s *domain.Service) []domain.Span {
	if s == nil || s.DurationMinutes == nil {
		return []domain.Span{o}
	}
	step := *s.DurationMinutes + s.BufferBeforeMinutes + s.BufferAfterMinutes
	if s.SlotStepMinutes != nil {
		step = *s.SlotStepMinutes
	}
	var spans []domain.Span
	for from := o.From; ; from = from.Add(time.Duration(step) * time.Minute) {
		to := from.Add(time.Duration(*s.DurationMinutes) * time.Minute)
		if to.After(until) || !from.Before(o.To) {
			return spans
		}
		spans = append(spans, domain.Span{From: from, To: to})
	}
}

// TestExplainIsAvailability checks that the explanation of a slot equals the status in availability, and that any other time is
// not a slot. Claims outside the moment's own window change nothing.
func TestExplainIsAvailability(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := worlds().Draw(t, "world")
		got, err := allDays(w.Query, w.Catalogue, w.claims, w.Operator)
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.Units {
			u := &w.Units[i]
			shown := map[time.Time]availability.SlotStatus{}
			for _, d := range got {
				for _, day := range d.Units {
					for _, s := range day.Slots {
						if day.Unit.ID == u.ID {
							shown[s.From] = s.Status
						}
					}
				}
			}
			first, last := w.From.AddDays(1).End(w.Loc), w.To.End(w.Loc) // one day later: earlier slots may belong to the day before the range
			for range 20 {
				shown[first.Add(time.Duration(rapid.Int64Range(0, int64(last.Sub(first)/time.Minute)-1).Draw(t, "at"))*time.Minute)] += ""
			}
			for at, status := range shown {
				w.explained(t, *u, at, status)
			}
		}
	})
}

// explained compares the explanation of a moment with the status of the slot that is shown then; "" means no slot.
func (w world) explained(t *rapid.T, u domain.Unit, at time.Time, status availability.SlotStatus) {
	start := availability.Start{At: at}
	var claims []availability.Claim
	for _, c := range w.claims {
		if c.Overlaps(start.Window(w.Loc)) {
			claims = append(claims, c)
		}
	}
	r, _ := availability.Explain(u, w.Catalogue, start, claims, w.Operator)
	want := map[availability.Reason]availability.SlotStatus{
		availability.Free: availability.SlotAvailable, availability.Booked: availability.SlotBooked, availability.Held: availability.SlotHeld,
		availability.Maintenance: availability.SlotBlocked, availability.InClosure: availability.SlotBlocked, availability.Notice: availability.SlotBlocked, availability.Advance: availability.SlotBlocked,
	}
	if status == "" && r == availability.Free || status != "" && want[r] != status {
		t.Fatalf("%s at %s is shown %q and explained %q", u.ID, at, status, r)
	}
}

// TestOfferedSeatsAreBookable checks that a slot of a shared unit is offered exactly when the rules accept a booking of one seat, and
// either its own session has a seat left or no other claim overlaps it. Only slots are offered.
func TestOfferedSeatsAreBookable(t *testing.T) {
	t.Parallel()
	seen := map[availability.SlotStatus]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := worlds().Draw(t, "world")
		w.claims = nil
		for i := range w.Units {
			w.Units[i].BookingMode, w.Units[i].Capacity = domain.SeatsMode, new(rapid.IntRange(1, 4).Draw(t, "capacity"))
		}
		q := narrowed(t, w)
		rules := w
		w.openSessions(t, q)
		got, err := allDays(q, w.Catalogue, w.claims, w.Operator)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range got {
			for _, u := range d.Units {
				p, service := w.terms(q, *u.Unit)
				for _, s := range u.Slots {
					seen[s.Status]++
					if !availability.Offers(*u.Unit, service, p, w.Services, s.Span, w.Loc) ||
						availability.Offers(*u.Unit, service, p, w.Services, domain.Span{From: s.From, To: s.To.Add(time.Minute)}, w.Loc) {
						t.Fatalf("%v is a slot, or another end is", s.Span)
					}
					left, clash := w.seats(*u.Unit, service, s.Span)
					if free := rules.book(q, *u.Unit, s.Span) == nil && !clash && left > 0; free != (s.Status == availability.SlotAvailable) {
						t.Fatalf("%v is %s with %+v; %d seats are left, another claim overlaps: %v", s.Span, s.Status, s.Seats, left, clash)
					}
					if s.Status == availability.SlotAvailable && s.Seats.Capacity-s.Seats.Taken != left {
						t.Fatalf("%v has %+v, want %d left", s.Span, s.Seats, left)
					}
				}
			}
		}
	})
	if seen[availability.SlotAvailable] == 0 || seen[availability.SlotHeld] == 0 || seen[availability.SlotBooked] == 0 {
		t.Errorf("not every status was seen: %v", seen)
	}
}

// openSessions draws sessions of slots that do not overlap, and bookings of all seats of others.
func (w *world) openSessions(t *rapid.T, q availability.Query) {
	empty, err := allDays(q, w.Catalogue, nil, w.Operator)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range empty {
		for _, u := range d.Units {
			_, service := w.terms(q, *u.Unit)
			for _, s := range u.Slots {
				c := availability.Claim{Span: claimed(service, s.Span), Unit: u.Unit.ID, Status: domain.Confirmed}
				overlaps := func(o availability.Claim) bool { return o.Unit == c.Unit && o.Overlaps(c.Span) }
				if slices.ContainsFunc(w.claims, overlaps) || rapid.IntRange(0, 3).Draw(t, "empty") == 0 {
					continue
				}
				if rapid.IntRange(0, 4).Draw(t, "private") > 0 {
					taken := rapid.IntRange(1, *u.Unit.Capacity).Draw(t, "taken")
					lapsed := rapid.IntRange(0, taken).Draw(t, "lapsed")
					c.Status, c.Session = "", &availability.Session{
						Slot: s.Span, Capacity: *u.Unit.Capacity, Taken: taken, Lapsed: lapsed, Held: rapid.IntRange(0, taken-lapsed).Draw(t, "held"),
					}
				}
				w.claims = append(w.claims, c)
			}
		}
	}
}

// terms returns the package and the service that a client books.
func (w world) terms(q availability.Query, u domain.Unit) (*domain.Package, *domain.Service) {
	for i := range w.Packages {
		if q.Package != nil && w.Packages[i].ID == *q.Package {
			return &w.Packages[i], w.service(q, u, &w.Packages[i])
		}
	}
	return nil, w.service(q, u, nil)
}

func claimed(service *domain.Service, s domain.Span) domain.Span {
	if service == nil {
		return s
	}
	return domain.Span{From: s.From.Add(-domain.Minutes(service.BufferBeforeMinutes)), To: s.To.Add(domain.Minutes(service.BufferAfterMinutes))}
}

// seats returns the seats that are left in a slot, and whether another claim overlaps it.
func (w world) seats(u domain.Unit, service *domain.Service, s domain.Span) (left int, clash bool) {
	left = *u.Capacity
	for _, c := range w.claims {
		switch {
		case c.Unit != u.ID || !c.Overlaps(claimed(service, s)):
		case c.Session == nil:
			clash = true
		case c.Session.Slot == s:
			return left - c.Session.Taken + c.Session.Lapsed, false
		case c.Session.Taken > c.Session.Lapsed:
			clash = true
		}
	}
	return left, clash
}
