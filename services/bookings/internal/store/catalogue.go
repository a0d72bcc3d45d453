package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// Catalogue is what an operator offers; units are linked to services by their ServiceIDs.
type Catalogue struct {
	Services []domain.Service
	Units    []domain.Unit
	Packages []domain.Package
	Rules    []domain.HolidayRule
}

// InsertCatalogue writes rows that are not there yet and leaves the others as they are.
func InsertCatalogue(ctx context.Context, tx pg.Tx, c Catalogue) error {
	b := &pgx.Batch{}
	for _, s := range c.Services {
		b.Queue(insertService+` on conflict do nothing`, serviceArgs(s))
	}
	for _, u := range c.Units {
		b.Queue(insertUnit+` on conflict do nothing`, unitArgs(u))
		b.Queue(linkUnit, unitArgs(u))
	}
	for _, p := range c.Packages {
		b.Queue(insertPackage+` on conflict do nothing`, packageArgs(p))
		b.Queue(linkPackage, packageArgs(p))
	}
	for _, r := range c.Rules {
		b.Queue(insertHoliday+` on conflict do nothing`, holidayArgs(r))
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("insert catalogue: %w", err)
	}
	return nil
}
