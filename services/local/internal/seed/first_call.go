package seed

import "fmt"

// FirstCall returns a command that creates a customer and a booking with a deposit for the customer. If it is run twice, the
// second booking is refused with 409.
func (r Result) FirstCall(base string) string {
	headers := fmt.Sprintf(`-H 'Authorization: Bearer %s' -H 'Content-Type: application/json'`, r.TestKey)
	customer := fmt.Sprintf(`curl -sS %s/customers %s -d '{"first_name":"Grace","email":"grace@example.com"}'`, base, headers)
	if r.Booking == nil {
		return customer
	}
	end := ""
	if r.Booking.End != "" {
		end = fmt.Sprintf(`,"event_end_time":%q`, r.Booking.End)
	}
	return fmt.Sprintf(`curl -sS %s/bookings %s -d '{"customer_id":"'$(%s | grep -o 'cu_[a-z0-9]*' | head -1)'","package_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":%q%s}'`,
		base, headers, customer, r.Booking.PackageID, r.Booking.UnitID, r.Booking.Date, r.Booking.Start, end)
}
