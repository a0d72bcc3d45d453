package command

import (
	"encoding/json"
	"fmt"
	"time"
)

// availabilityPath is the path of the list of days whose table has a row per slot.
const availabilityPath = "/availability"

// slotColumns are the columns of the table of slots.
var slotColumns = []string{"date", "start", "end", "unit", "status", "seats", "price_from", "unit_id"}

// availabilityDay is what the table of slots needs of a day.
type availabilityDay struct {
	Date     string `json:"date"`
	Timezone string `json:"timezone"`
	Units    []struct {
		ID    string `json:"unit_id"`
		Name  string `json:"name"`
		Slots []struct {
			StartsAt time.Time `json:"starts_at"`
			EndsAt   time.Time `json:"ends_at"`
			Status   string    `json:"status"`
			Seats    *struct {
				Capacity  int `json:"capacity"`
				Available int `json:"available"`
			} `json:"seats"`
		} `json:"slots"`
	} `json:"units"`
}

// slotRows returns a row for each slot of a day, with the properties of the day, in the tenant's time. A day without slots has one row.
func slotRows(text json.RawMessage) ([]json.RawMessage, error) {
	var day availabilityDay
	var properties map[string]any
	if err := json.Unmarshal(text, &day); err != nil {
		return nil, fmt.Errorf("the row is not a day: %w", err)
	}
	if err := json.Unmarshal(text, &properties); err != nil {
		return nil, fmt.Errorf("the row is not a day: %w", err)
	}
	zone, err := time.LoadLocation(day.Timezone)
	if err != nil {
		return nil, fmt.Errorf("time zone of the day: %w", err)
	}
	delete(properties, "units")
	var rows []json.RawMessage
	add := func() error {
		row, err := json.Marshal(properties)
		rows = append(rows, row)
		return err
	}
	for _, unit := range day.Units {
		for _, slot := range unit.Slots {
			properties["unit_id"], properties["unit"], properties["status"] = unit.ID, unit.Name, slot.Status
			properties["start"], properties["end"] = clock(slot.StartsAt, zone, day.Date), clock(slot.EndsAt, zone, day.Date)
			properties["seats"] = ""
			if slot.Seats != nil {
				properties["seats"] = fmt.Sprintf("%d of %d", slot.Seats.Available, slot.Seats.Capacity)
			}
			if err := add(); err != nil {
				return nil, err
			}
		}
	}
	if len(rows) == 0 {
		return rows, add()
	}
	return rows, nil
}

// clock returns a time of a day as 15:04, with the date if it is another day.
func clock(at time.Time, zone *time.Location, day string) string {
	local := at.In(zone)
	if date := local.Format(time.DateOnly); date != day {
		return date + " " + local.Format("15:04")
	}
	return local.Format("15:04")
}
