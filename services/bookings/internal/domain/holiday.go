package domain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
)

// Recurrence specifies whether a holiday rule repeats each year.
type Recurrence string

// A rule applies once, or each year.
const (
	Once   Recurrence = "none"
	Yearly Recurrence = "yearly"
)

// HolidayRule multiplies the price of events on some days. Empty ServiceIDs and PackageIDs mean all.
type HolidayRule struct {
	ID            HolidayID
	Name          string
	From          civil.Date `db:"date_from"` // in the operator's time zone; only month and day count for a yearly rule
	To            civil.Date `db:"date_to"`   // inclusive
	Recurrence    Recurrence
	MultiplierBps int64 // 11500 means a factor of 1.15
	ServiceIDs    []ServiceID
	PackageIDs    []PackageID
	Priority      int
	Stackable     bool
	Active        bool
	Version       int64
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// HolidayRulePatch contains the fields of a create or an update. An absent field stays unchanged.
type HolidayRulePatch struct {
	Name          patch.Field[string]
	From, To      patch.Field[string] // as sent
	Recurrence    patch.Field[Recurrence]
	MultiplierBps patch.Field[int64]
	AppliesTo     patch.Field[json.RawMessage] // as sent
	Priority      patch.Field[int]
	Stackable     patch.Field[bool]
	Active        patch.Field[bool]
}

// NewHolidayRule returns a holiday rule before its first patch.
func NewHolidayRule() HolidayRule {
	return HolidayRule{ID: ids.New[HolidayPrefix](), Recurrence: Once, Active: true}
}

// Apply returns the holiday rule with the given fields.
func (r HolidayRule) Apply(p HolidayRulePatch) (HolidayRule, error) {
	p.Name.Set(&r.Name)
	p.Recurrence.Set(&r.Recurrence)
	p.MultiplierBps.Set(&r.MultiplierBps)
	p.Priority.Set(&r.Priority)
	p.Stackable.Set(&r.Stackable)
	p.Active.Set(&r.Active)
	var target error
	if raw := p.AppliesTo.Pointer(); raw != nil {
		var t Target
		t, target = ParseTarget(*raw)
		r.ServiceIDs, r.PackageIDs = t.ServiceIDs, t.PackageIDs
	}
	err := apperr.Join(setDate(&r.From, p.From, "date_from"), setDate(&r.To, p.To, "date_to"), target)
	return r, err
}

func setDate(to *civil.Date, given patch.Field[string], name string) error {
	text := given.Pointer()
	if text == nil {
		return nil
	}
	d, err := civil.ParseDate(*text)
	if err != nil {
		return field(name, "%s", err)
	}
	*to = d
	return nil
}

// Check returns the error of a rule whose fields are inconsistent. The contract checks each field separately. The range of a yearly
// rule can end before it starts: it then spans New Year.
func (r HolidayRule) Check() error {
	if r.Recurrence != Yearly && r.To.Before(r.From) {
		return field("date_to", "Must not be before date_from. Only a yearly rule can span New Year.")
	}
	return nil
}

// Covers reports whether the rule applies on the day. A yearly range can span New Year. A range that ends on February 29 ends on
// February 28 in a common year. A range of only February 29 skips common years.
func (r HolidayRule) Covers(d civil.Date) bool {
	if r.Recurrence != Yearly {
		return !d.Before(r.From) && !r.To.Before(d)
	}
	if r.From.DaysUntil(r.To) >= daysOfYear {
		return true
	}
	from, to, at := yearDay(r.From), yearDay(r.To), yearDay(d)
	if from <= to {
		return from <= at && at <= to
	}
	return at >= from || at <= to
}

const daysOfYear = 365

// yearDay orders the days within any year, including February 29.
func yearDay(d civil.Date) int { return int(d.Month)*32 + d.Day }

// AppliesTo reports whether the rule concerns the package.
func (r HolidayRule) AppliesTo(p Package) bool {
	switch r.narrowness() {
	case byPackage:
		return slices.Contains(r.PackageIDs, p.ID)
	case byService:
		return slices.Contains(r.ServiceIDs, p.ServiceID)
	default:
		return true
	}
}

const (
	byPackage = iota
	byService
	byAll
)

func (r HolidayRule) narrowness() int {
	switch {
	case len(r.PackageIDs) > 0:
		return byPackage
	case len(r.ServiceIDs) > 0:
		return byService
	default:
		return byAll
	}
}

// Matching returns the active rules that apply to the package on the day, with the deciding one first. The order is: highest
// priority, then package before service before all, then the shortest range, then the lowest id.
func Matching(rules []HolidayRule, p Package, d civil.Date) []HolidayRule {
	found := make([]HolidayRule, 0, len(rules))
	for _, r := range rules {
		if r.Active && r.Covers(d) && r.AppliesTo(p) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, deciding)
	return found
}

// deciding orders rules so that the deciding one comes first, regardless of their packages.
func deciding(a, b HolidayRule) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.narrowness(), b.narrowness()),
		cmp.Compare(a.days(), b.days()),
		CompareIDs(a.ID, b.ID),
	)
}

// days returns the length of the range. For a yearly range, it is the length of its longest occurrence.
func (r HolidayRule) days() int {
	n := r.From.DaysUntil(r.To)
	if n >= 0 {
		return n
	}
	leap := func(d civil.Date, year int) civil.Date { return civil.Date{Year: year, Month: d.Month, Day: d.Day} }
	if n = leap(r.From, 2000).DaysUntil(leap(r.To, 2000)); n < 0 {
		n = leap(r.From, 1999).DaysUntil(leap(r.To, 2000))
	}
	return n
}

// Target is what a holiday rule applies to: some services, some packages or, with neither, all.
type Target struct {
	ServiceIDs []ServiceID
	PackageIDs []PackageID
}

// Target returns the rule's applies_to.
func (r HolidayRule) Target() Target {
	return Target{ServiceIDs: r.ServiceIDs, PackageIDs: r.PackageIDs}
}

// errTarget lists the three forms.
var errTarget = field("applies_to", `Must be "all", {"service_ids": […]} or {"package_ids": […]}.`)

// ParseTarget reads applies_to. A list must not be empty, because in the table an empty list means all. A malformed id counts as
// unknown.
func ParseTarget(raw []byte) (Target, error) {
	if raw = bytes.TrimSpace(raw); string(raw) == `"all"` {
		return Target{}, nil
	}
	var lists struct {
		Services *[]string `json:"service_ids"`
		Packages *[]string `json:"package_ids"`
	}
	if err := json.Unmarshal(raw, &lists); err != nil || (lists.Services == nil) == (lists.Packages == nil) {
		return Target{}, errTarget
	}
	var t Target
	var failed []apperr.FieldError
	if lists.Services != nil {
		t.ServiceIDs, failed = parseIDs[ServicePrefix]("applies_to.service_ids", "Service not found.", *lists.Services)
	} else {
		t.PackageIDs, failed = parseIDs[PackagePrefix]("applies_to.package_ids", "Package not found.", *lists.Packages)
	}
	if len(failed) > 0 {
		return Target{}, apperr.Fields(failed)
	}
	return t, nil
}

func parseIDs[P ids.Prefix](name, unknown string, list []string) ([]ids.ID[P], []apperr.FieldError) {
	if len(list) == 0 {
		return nil, []apperr.FieldError{{Field: name, Message: `Must not be empty; "all" names everything.`}}
	}
	var failed []apperr.FieldError
	parsed := make([]ids.ID[P], 0, len(list))
	for i, text := range list {
		id, err := ids.Parse[P](text)
		if err != nil {
			failed = append(failed, apperr.FieldError{Field: fmt.Sprintf("%s.%d", name, i), Message: unknown})
		}
		parsed = append(parsed, id)
	}
	return parsed, failed
}

// MarshalJSON implements json.Marshaler. It returns the public form.
func (t Target) MarshalJSON() ([]byte, error) {
	var shape any = "all"
	switch {
	case len(t.PackageIDs) > 0:
		shape = map[string][]PackageID{"package_ids": t.PackageIDs}
	case len(t.ServiceIDs) > 0:
		shape = map[string][]ServiceID{"service_ids": t.ServiceIDs}
	}
	raw, err := json.Marshal(shape)
	if err != nil {
		return nil, fmt.Errorf("applies_to: %w", err)
	}
	return raw, nil
}
