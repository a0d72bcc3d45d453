package view

import (
	"encoding/json"
	"fmt"

	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// HolidayRule returns the public body of a holiday rule in the caller's mode.
func HolidayRule(r domain.HolidayRule, mode api.Mode) api.HolidayRule {
	target, err := json.Marshal(r.Target())
	if err != nil {
		panic(fmt.Sprintf("applies_to: %v", err)) // cannot happen: it contains only ids and a word
	}
	return api.HolidayRule{
		Id:            r.ID.String(),
		Object:        api.HolidayRuleObjectHolidayRule,
		Name:          r.Name,
		DateFrom:      r.From.String(),
		DateTo:        r.To.String(),
		Recurrence:    api.Recurrence(r.Recurrence),
		MultiplierBps: r.MultiplierBps,
		AppliesTo:     target,
		Priority:      r.Priority,
		Stackable:     r.Stackable,
		Active:        r.Active,
		Mode:          mode,
		Version:       r.Version,
		CreatedAt:     r.CreatedAt.UTC(),
		UpdatedAt:     r.UpdatedAt.UTC(),
	}
}
