package availability_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

// fataler is a test, or a draw in a test.
type fataler interface{ Fatal(args ...any) }

func id[P ids.Prefix]() ids.ID[P] { return ids.New[P]() }

func zone(t fataler, name string) *time.Location {
	loc, err := civil.Location(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func date(s string) civil.Date {
	d, err := civil.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

func instant(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func span(from, to string) domain.Span { return domain.Span{From: instant(from), To: instant(to)} }

func days(from, to string) availability.Range {
	return availability.Range{From: date(from), To: date(to)}
}

func week(t fataler, text string) domain.OpeningHours {
	var h domain.OpeningHours
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

func tour(duration *int, change ...func(*domain.Service)) domain.Service {
	s := domain.Service{ID: id[domain.ServicePrefix](), Name: "Tour", DurationMinutes: duration, Active: true}
	for _, f := range change {
		f(&s)
	}
	return s
}

func buffers(before, after int) func(*domain.Service) {
	return func(s *domain.Service) { s.BufferBeforeMinutes, s.BufferAfterMinutes = before, after }
}

func step(n int) func(*domain.Service) { return func(s *domain.Service) { s.SlotStepMinutes = &n } }

// boat returns an active unit with links to the services.
func boat(hours domain.OpeningHours, services ...domain.Service) domain.Unit {
	u := domain.Unit{ID: id[domain.UnitPrefix](), Name: "Boat", Status: domain.UnitActive, OpeningHours: hours}
	for _, s := range services {
		u.ServiceIDs = append(u.ServiceIDs, s.ID)
	}
	return u
}

func pack(s domain.Service, price int64, change ...func(*domain.Package)) domain.Package {
	p := domain.Package{
		ID: id[domain.PackagePrefix](), ServiceID: s.ID, Visible: true, Active: true,
		Terms: domain.Terms{Name: "Package", BasePrice: money.Amount{Minor: price, Currency: "USD"}, DepositType: domain.DepositNone},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func rule(from, to string, bps int64, change ...func(*domain.HolidayRule)) domain.HolidayRule {
	r := domain.HolidayRule{
		ID: id[domain.HolidayPrefix](), Name: from, From: date(from), To: date(to), Recurrence: domain.Once, MultiplierBps: bps, Active: true,
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

// allDays plans the query and returns its days.
func allDays(q availability.Query, c availability.Catalogue, claims []availability.Claim, op availability.Operator) ([]availability.Day, error) {
	p, err := availability.NewPlan(context.Background(), q, c, op)
	if err != nil {
		return nil, err
	}
	return p.Days(context.Background(), claims)
}

// mustDays requests days and fails on an error.
func mustDays(t testing.TB, q availability.Query, c availability.Catalogue, claims []availability.Claim, op availability.Operator) []availability.Day {
	t.Helper()
	got, err := allDays(q, c, claims, op)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// starts returns the start times of the slots in UTC, with a letter for each status except available.
func starts(slots []availability.Slot) string {
	var out []string
	for _, s := range slots {
		text := s.From.Format("02T15:04")
		if s.Status != availability.SlotAvailable {
			text += string(s.Status[:2])
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}
