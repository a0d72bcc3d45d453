package view

import (
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain/availability"
)

// Availability returns the public form of a response. It contains all days, and there is no next page.
func Availability(days []availability.Day, timezone string) api.AvailabilityList {
	list := api.AvailabilityList{Data: make([]api.AvailabilityDay, len(days)), NextCursor: api.Null[string]()}
	for i, d := range days {
		list.Data[i] = api.AvailabilityDay{
			Object: api.AvailabilityDayObjectAvailabilityDay, Date: d.Date.String(), Timezone: timezone, Status: api.AvailabilityStatus(d.Status),
			PriceFrom: api.Null[api.Money](), Holiday: nullable.NewNullNullable[api.HolidaySnapshot](),
			Units: make([]api.AvailabilityUnit, len(d.Units)),
		}
		if d.Price != nil {
			list.Data[i].PriceFrom = nullable.NewNullableWithValue(amount(d.Price.Total))
			list.Data[i].Holiday = holiday(d.Price.Snapshot.Holiday)
		}
		for j, u := range d.Units {
			list.Data[i].Units[j] = unitDay(u)
		}
	}
	return list
}

func unitDay(u availability.UnitDay) api.AvailabilityUnit {
	slots := make([]api.AvailabilitySlot, len(u.Slots))
	for i, s := range u.Slots {
		slots[i] = api.AvailabilitySlot{StartsAt: s.From.UTC(), EndsAt: s.To.UTC(), Status: api.AvailabilitySlotStatus(s.Status)}
	}
	return api.AvailabilityUnit{UnitId: u.Unit.ID.String(), Name: u.Unit.Name, Status: api.AvailabilityStatus(u.Status), Slots: slots}
}

// Explanation returns the public form of a reason. availability.Free means no reason.
func Explanation(r availability.Reason) api.AvailabilityExplanation {
	if r == availability.Free {
		return api.AvailabilityExplanation{Available: true, Reason: api.Null[api.AvailabilityExplanationReason]()}
	}
	return api.AvailabilityExplanation{Reason: nullable.NewNullableWithValue(api.AvailabilityExplanationReason(r))}
}
