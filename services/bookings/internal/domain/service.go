package domain

import (
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
)

// Service is what an operator offers, such as a tour. Buffers block its unit around a timed booking.
type Service struct {
	ID                  ServiceID
	Name                string
	Description         *string
	DurationMinutes     *int // of a booking without a given end
	SlotStepMinutes     *int
	BufferBeforeMinutes int
	BufferAfterMinutes  int
	Active              bool
	UnitIDs             []UnitID
	DefaultTaxes        *[]money.Tax // of lines of documents; nil: those of the operator apply
	Version             int64
	CreatedAt           time.Time
	UpdatedAt           time.Time
}

// ServicePatch contains the fields of a create or an update. An absent field stays unchanged.
type ServicePatch struct {
	Name                patch.Field[string]
	Description         patch.Field[string]
	DurationMinutes     patch.Field[int]
	SlotStepMinutes     patch.Field[int]
	BufferBeforeMinutes patch.Field[int]
	BufferAfterMinutes  patch.Field[int]
	Active              patch.Field[bool]
	UnitIDs             patch.Field[[]string] // as sent
	DefaultTaxes        patch.Field[[]money.TaxInput]
}

// NewService returns a service before its first patch.
func NewService() Service { return Service{ID: ids.New[ServicePrefix](), Active: true} }

// Apply returns the service with the given fields.
func (s Service) Apply(p ServicePatch) (Service, error) {
	p.Name.Set(&s.Name)
	p.Description.SetNullable(&s.Description)
	p.DurationMinutes.SetNullable(&s.DurationMinutes)
	p.SlotStepMinutes.SetNullable(&s.SlotStepMinutes)
	p.BufferBeforeMinutes.Set(&s.BufferBeforeMinutes)
	p.BufferAfterMinutes.Set(&s.BufferAfterMinutes)
	p.Active.Set(&s.Active)
	return s, apperr.Join(setIDs(&s.UnitIDs, p.UnitIDs, "unit_ids", "Unit not found."), s.setTaxes(p.DefaultTaxes))
}

func (s *Service) setTaxes(in patch.Field[[]money.TaxInput]) error {
	if !in.Given() {
		return nil
	}
	s.DefaultTaxes = nil
	list := in.Pointer()
	if list == nil {
		return nil
	}
	taxes, err := money.ParseTaxes("default_taxes", *list)
	s.DefaultTaxes = &taxes
	return err
}
