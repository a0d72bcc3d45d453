set -euo pipefail

# snippet tour
api() { curl -sS --fail-with-body -H 'Prefer: handling=strict' --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL$1" "${@:2}"; }

service_id=$(api /services --json '{"name": "Seal tour", "duration_minutes": 90}' | jq -r .id)
unit_id=$(api /units --json '{"name": "Puffin", "booking_mode": "seats", "capacity": 10, "service_ids": ["'"$service_id"'"],
  "opening_hours": {"sat": [["10:00", "16:00"]], "sun": [["10:00", "16:00"]]}}' | jq -r .id)
package_id=$(api /packages --json '{"name": "Seat", "service_id": "'"$service_id"'", "pricing": "per_guest",
  "base_price": {"amount": 4500, "currency": "USD"}}' | jq -r .id)
# end

# snippet book
api /bookings --json '{"unit_id": "'"$unit_id"'", "package_id": "'"$package_id"'",
  "event_date": "2027-07-03", "event_start_time": "10:00", "guest_count": 2}' | jq -r '.status, .total_amount.amount'
# end

# snippet seats
api "/availability/explain?unit_id=$unit_id&starts_at=2027-07-03T10:00:00-04:00" |
  jq -r '.available, .seats.capacity, .seats.taken, .seats.available'
# end
