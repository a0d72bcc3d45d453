package domain

import (
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
)

// MaxConflicts is the largest number of bookings that a closure lists.
const MaxConflicts = 100

// Closure is a time at which units accept no bookings. Bookings that were there before it stay.
type Closure struct {
	ID        ClosureID
	Name      string
	UnitIDs   []UnitID    // nil: all units, including later ones
	From      *civil.Date `db:"date_from"` // in Timezone; nil: the closure has times instead of dates
	To        *civil.Date `db:"date_to"`   // inclusive; nil as From is
	StartsAt  time.Time   // with dates: the first instant of From
	EndsAt    time.Time   // exclusive; with dates: the end of To
	Timezone  string      // IANA name of the operator's time zone at the creation
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time

	// Conflicts contains the pending and confirmed bookings that overlap the closure, at most MaxConflicts. Nil: not read.
	Conflicts []BookingID `db:"-"`
}

// ClosurePatch contains the fields of a create or an update. An absent field stays unchanged. Dates and times are as sent.
type ClosurePatch struct {
	Name             patch.Field[string]
	UnitIDs          patch.Field[[]string]
	From, To         patch.Field[string]
	StartsAt, EndsAt patch.Field[string]
}

// NewClosure returns a closure before its first patch. timezone is the IANA name of the operator's time zone.
func NewClosure(timezone string) Closure {
	return Closure{ID: ids.New[ClosurePrefix](), Timezone: timezone}
}

// Ended reports whether the closure is over.
func (c Closure) Ended(now time.Time) bool { return !c.EndsAt.After(now) }

// Span returns the closed time.
func (c Closure) Span() Span { return Span{From: c.StartsAt, To: c.EndsAt} }

// Days returns the local days on which the closure begins and ends.
func (c Closure) Days(loc *time.Location) (from, to civil.Date) {
	return civil.DateOf(c.StartsAt.In(loc)), civil.DateOf(c.EndsAt.Add(-time.Microsecond).In(loc))
}

// Apply returns the closure with the given fields.
func (c Closure) Apply(p ClosurePatch) (Closure, error) {
	loc, err := civil.Location(c.Timezone)
	if err != nil {
		return Closure{}, err
	}
	p.Name.Set(&c.Name)
	var units error
	if p.UnitIDs.Given() {
		c.UnitIDs = nil
		units = setIDs(&c.UnitIDs, p.UnitIDs, "unit_ids", "Unit not found.")
	}
	return c, apperr.Join(units, c.setTime(p, loc))
}

// setTime sets the dates or the times. One of a pair can change alone. The other pair replaces both.
func (c *Closure) setTime(p ClosurePatch, loc *time.Location) error {
	dates := p.From.Pointer() != nil || p.To.Pointer() != nil
	times := p.StartsAt.Pointer() != nil || p.EndsAt.Pointer() != nil
	switch {
	case dates && times:
		return field("starts_at", "Send either date_from and date_to, or starts_at and ends_at.")
	case times:
		return c.setTimes(p, loc)
	case dates, c.EndsAt.IsZero(), c.From != nil && (p.From.Given() || p.To.Given()):
		return c.setDates(p, loc)
	case c.From == nil && (p.StartsAt.Given() || p.EndsAt.Given()):
		return c.setTimes(p, loc)
	}
	return nil
}

func (c *Closure) setDates(p ClosurePatch, loc *time.Location) error {
	err := apperr.Join(setDay(&c.From, p.From, "date_from", loc), setDay(&c.To, p.To, "date_to", loc))
	switch {
	case err != nil:
		return err
	case c.To.Before(*c.From):
		return field("date_to", "Must not be before date_from.")
	}
	c.StartsAt, _ = c.From.Start(loc) // setDay checks that the day exists
	c.EndsAt = c.To.End(loc)
	return nil
}

// setDay changes a date if one is given. The date must exist in loc.
func setDay(to **civil.Date, given patch.Field[string], name string, loc *time.Location) error {
	if given.Given() {
		*to = nil
	}
	if text := given.Pointer(); text != nil {
		d, err := civil.ParseDate(*text)
		if err != nil {
			return field(name, "%s", err)
		}
		if _, exists := d.Start(loc); !exists {
			return field(name, "%s", civil.ErrNoSuchDay)
		}
		*to = &d
	}
	if *to == nil {
		return field(name, "Is required, unless you send starts_at and ends_at.")
	}
	return nil
}

func (c *Closure) setTimes(p ClosurePatch, loc *time.Location) error {
	from, to := &c.StartsAt, &c.EndsAt
	if c.From != nil || c.EndsAt.IsZero() { // the closure had no times of its own
		from, to = nil, nil
	}
	err := apperr.Join(setInstant(&from, p.StartsAt, "starts_at", loc), setInstant(&to, p.EndsAt, "ends_at", loc))
	switch {
	case err != nil:
		return err
	case !to.After(*from):
		return field("ends_at", "Must be after starts_at.")
	}
	c.From, c.To, c.StartsAt, c.EndsAt = nil, nil, *from, *to
	return nil
}

func setInstant(to **time.Time, given patch.Field[string], name string, loc *time.Location) error {
	if given.Given() {
		*to = nil
	}
	if text := given.Pointer(); text != nil {
		at, err := civil.ParseInstant(*text, loc)
		if err != nil {
			return field(name, "%s", err)
		}
		*to = &at
	}
	if *to == nil {
		return field(name, "Is required, unless you send date_from and date_to.")
	}
	return nil
}
