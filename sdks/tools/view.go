package tools

import (
	"context"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for systems without time zones

	"github.com/bojanz/currency"

	holdfast "holdfast.dev/sdks/go"
)

// view converts objects of the API to results, in the operator's time zone.
type view struct{ zone *time.Location }

func (v view) name() string { return v.zone.String() }

// moment is a time in the operator's time zone. In JSON it is RFC 3339 with the offset of the zone.
type moment struct{ time.Time }

// at returns a time, or nil.
func (v view) at(t *time.Time) *moment {
	if t == nil {
		return nil
	}
	return &moment{t.In(v.zone)}
}

// MarshalJSON writes seconds, not fractions of them.
func (m moment) MarshalJSON() ([]byte, error) {
	return []byte(m.Format(`"` + time.RFC3339 + `"`)), nil
}

// MarshalYAML writes the time for people.
func (m moment) MarshalYAML() (any, error) { return m.Format("Mon 2006-01-02 15:04 -07:00"), nil }

// money is an amount. In text it is decimal.
type money struct {
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

func amount(m holdfast.Money) money { return money{m.Amount, m.Currency} }

// MarshalYAML writes the amount in the unit of its currency: 25.00 USD.
func (m money) MarshalYAML() (any, error) {
	a, err := currency.NewAmountFromInt64(m.AmountMinor, m.Currency)
	if err != nil {
		return nil, err
	}
	return a.Number() + " " + m.Currency, nil
}

// minor reads a decimal amount, such as 25.00, as an amount in the smallest unit of the currency.
func minor(field, text, code string) (int64, error) {
	digits, ok := currency.GetDigits(code)
	if !ok {
		return 0, invalid("currency", "must be an ISO 4217 code such as USD")
	}
	whole, fraction, _ := strings.Cut(text, ".")
	a, err := currency.NewAmount(text, code)
	if err != nil || whole == "" || len(fraction) > int(digits) || strings.ContainsAny(text, "eE+_ ") {
		return 0, invalid(field, "must be a decimal number with at most "+string('0'+rune(digits))+" decimals in "+code+", such as "+example(code))
	}
	n, err := a.Int64()
	if err != nil {
		return 0, invalid(field, "is too large")
	}
	return n, nil
}

// example returns an amount in the form of a currency.
func example(code string) string {
	a, err := currency.NewAmountFromInt64(2500, code)
	if err != nil {
		return ""
	}
	return a.Number()
}

// zoneAge is how long the operator's time zone is used before it is read again.
const zoneAge = 5 * time.Minute

// zones remembers the operator's time zone.
type zones struct {
	mu   sync.Mutex
	zone *time.Location
	read time.Time
}

// remember stores the operator's time zone.
func (z *zones) remember(tenant *holdfast.Tenant) (view, error) {
	zone, err := time.LoadLocation(tenant.Timezone)
	if err != nil {
		return view{}, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.zone, z.read = zone, time.Now()
	return view{zone}, nil
}

// recent returns the operator's time zone, or nil if it must be read again.
func (z *zones) recent() *time.Location {
	z.mu.Lock()
	defer z.mu.Unlock()
	if time.Since(z.read) > zoneAge {
		return nil
	}
	return z.zone
}

// view returns the view of the operator's time zone.
func (t *toolbox) view(ctx context.Context) (view, error) {
	if zone := t.zones.recent(); zone != nil {
		return view{zone}, nil
	}
	tenant, err := t.client.Tenant.Get(ctx)
	if err != nil {
		return view{}, err
	}
	return t.zones.remember(tenant)
}

// local returns the instant of a date and a time of day. Of a time that occurs twice, it is the first. ok is false if the time does not
// exist on that day.
func (v view) local(date, clock string) (at time.Time, ok bool, err error) {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return at, false, invalid("date", "must be a date such as 2027-07-03")
	}
	wall, err := time.Parse("15:04", clock)
	if err != nil {
		return at, false, invalid("start_time", "must be a time such as 09:00")
	}
	want := day.Add(time.Duration(wall.Hour())*time.Hour + time.Duration(wall.Minute())*time.Minute)
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // the offsets before and after a change on that day
		_, offset := want.Add(near).In(v.zone).Zone()
		at = want.Add(-time.Duration(offset) * time.Second).In(v.zone)
		if at.Format("2006-01-02T15:04") == want.Format("2006-01-02T15:04") {
			return at, true, nil
		}
	}
	return at, false, nil
}
