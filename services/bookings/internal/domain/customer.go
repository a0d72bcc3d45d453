package domain

// Customer is what bookings knows of a customer: a projection of the customers service's events.
type Customer struct {
	ID      CustomerID
	Name    string // "" once erased
	Version int64
	Erased  bool // personal data is gone; no new booking may name the customer
}
