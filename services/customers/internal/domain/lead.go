package domain

import (
	"encoding/json"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/lease"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/oneline"
	"holdfast.dev/libs/patch"
)

// ErrLeadNotFound is the response for an id that is unknown, malformed or of another tenant.
var ErrLeadNotFound = apperr.New(apperr.NotFound, "lead_not_found", "Lead not found.")

// Lead is a person who has sent an inquiry and may book. Nil means unknown.
type Lead struct {
	ID          LeadID
	Status      LeadStatus
	Source      *string
	FirstName   string
	LastName    *string
	Email       *string
	Phone       *string
	Company     *string
	EventType   *string
	EventDay    *civil.Date // in the operator's zone
	EventAt     *time.Time  // the instant given for the day, or the first instant of the day
	GuestCount  *int
	Budget      *money.Amount
	Message     *string
	ServiceID   ServiceID
	UnitID      UnitID
	PackageID   PackageID
	CustomerID  CustomerID
	BookingID   BookingID // created when the lead was converted
	QuoteIDs    []QuoteID // newest first; looked up, not stored in the lead
	LostReason  *string
	Metadata    json.RawMessage // compact JSON in the order sent, an object or an array of strings; nil when empty
	Version     int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
	ConvertedAt *time.Time

	Conversion Conversion
}

// Conversion is the conversion of a lead with a booking, which may be in progress: it is not known yet whether bookings has created
// the booking. Readers do not see it.
type Conversion struct {
	lease.Lease

	Customer    CustomerID
	NewCustomer bool   // the customer is created together with the booking
	Body        []byte // JSON: the body of POST /bookings
	Tries       int    // attempts at this conversion
	Actor       string // the credential that requested it
}

// maxLease bounds how long a process exclusively holds a conversion after many attempts.
const maxLease = 10 * time.Minute

// Begin returns the next attempt. Each attempt has a longer lease than the previous one.
func (c Conversion) Begin(real time.Time) Conversion {
	c.Lease = c.Take(real, lease.Doubled(Lease, c.Tries, maxLease))
	c.Tries++
	return c
}

// End returns the state without a conversion in progress.
func (c Conversion) End() Conversion { return Conversion{Lease: c.Lease.End()} }

// LeadPatch holds the fields of a create or an update. An absent field stays unchanged.
type LeadPatch struct {
	FirstName                                 patch.Field[string]     // never null
	Status                                    patch.Field[LeadStatus] // never null
	Source, LastName, Email, Phone, Company   patch.Field[string]
	EventType, EventDate, Message, LostReason patch.Field[string]
	GuestCount                                patch.Field[int]
	Budget                                    patch.Field[money.Amount]
	ServiceID, UnitID, PackageID              patch.Field[string]
	Metadata                                  patch.Field[json.RawMessage]
}

// Operator is the data of the tenant that a lead's fields depend on.
type Operator struct {
	Zone     *time.Location
	Currency string
}

// NewLead returns a lead with these fields in its first state.
func NewLead(in LeadPatch, of Operator) (Lead, error) {
	return Lead{ID: ids.New[ids.LeadPrefix](), Status: LeadNew}.Apply(in, of)
}

// Apply returns the lead with the given fields, except its status. Ids must have been looked up in the catalogue.
func (l Lead) Apply(in LeadPatch, of Operator) (Lead, error) {
	in.FirstName.Set(&l.FirstName)
	in.Source.SetNullable(&l.Source)
	in.LastName.SetNullable(&l.LastName)
	in.Email.SetNullable(&l.Email)
	in.Phone.SetNullable(&l.Phone)
	in.Company.SetNullable(&l.Company)
	in.EventType.SetNullable(&l.EventType)
	in.GuestCount.SetNullable(&l.GuestCount)
	in.Message.SetNullable(&l.Message)
	patch.SetMetadata(in.Metadata, &l.Metadata)
	return l, apperr.Join(
		l.setEventDate(in.EventDate, of.Zone),
		l.setBudget(in.Budget, of.Currency),
		setID(&l.ServiceID, in.ServiceID, "service_id"),
		setID(&l.UnitID, in.UnitID, "unit_id"),
		setID(&l.PackageID, in.PackageID, "package_id"),
		l.setLostReason(in),
	)
}

func (l *Lead) setEventDate(f patch.Field[string], zone *time.Location) error {
	if !f.Given() {
		return nil
	}
	l.EventDay, l.EventAt = nil, nil
	text := f.Pointer()
	if text == nil {
		return nil
	}
	day, at, err := civil.ParseDay(*text, zone)
	if err != nil {
		return apperr.Field("event_date", "%s", err.Error())
	}
	if at == nil {
		start, _ := day.Start(zone) // ParseDay has checked that the day exists
		at = &start
	}
	l.EventDay, l.EventAt = &day, at
	return nil
}

func (l *Lead) setBudget(f patch.Field[money.Amount], currency string) error {
	if b := f.Pointer(); b != nil && b.Currency != currency {
		return apperr.Field("budget.currency", "Must be %s, the operator's currency.", currency)
	}
	f.SetNullable(&l.Budget)
	return nil
}

// setLostReason sets the reason of a lead whose new status is lost. It refuses a reason with any other status.
func (l *Lead) setLostReason(in LeadPatch) error {
	status := l.Status
	in.Status.Set(&status)
	if status != LeadLost {
		if in.LostReason.Pointer() != nil {
			return apperr.Field("lost_reason", "Is allowed only with the status lost.")
		}
		l.LostReason = nil
		return nil
	}
	in.LostReason.SetNullable(&l.LostReason)
	if l.LostReason == nil || oneline.Blank(*l.LostReason) {
		return apperr.Field("lost_reason", "Is required for the status lost.")
	}
	return nil
}

// setID changes an id if one is given. A malformed id counts as unknown.
func setID[P ids.Prefix](to *ids.ID[P], f patch.Field[string], field string) error {
	if !f.Given() {
		return nil
	}
	*to = ids.ID[P]{}
	text := f.Pointer()
	if text == nil {
		return nil
	}
	var err error
	if *to, err = ids.Parse[P](*text); err != nil {
		return UnknownReference(field)
	}
	return nil
}

// ApplyStatus returns the lead in the given state, or ErrTransition if the current state does not allow it. Setting the current
// state again changes nothing.
func (l Lead) ApplyStatus(f patch.Field[LeadStatus]) (Lead, error) {
	requested := f.Pointer()
	if requested == nil || *requested == l.Status {
		return l, nil
	}
	to, ok := l.Status.Next(leadActionFor[*requested])
	if !ok {
		return Lead{}, l.refuse(*requested)
	}
	l.Status = to
	return l, nil
}

// Convertible returns ErrTransition if the state does not allow the conversion of the lead.
func (l Lead) Convertible() error {
	if _, ok := l.Status.Next(ConvertLead); !ok {
		return l.refuse(LeadConverted)
	}
	return nil
}

// Convert returns the converted lead, with its customer and, if one was created, its booking.
func (l Lead) Convert(customer CustomerID, booking BookingID, now time.Time) Lead {
	l.Status, _ = l.Status.Next(ConvertLead)
	l.CustomerID, l.BookingID, l.ConvertedAt, l.LostReason = customer, booking, &now, nil
	l.Conversion = l.Conversion.End()
	return l
}

// refuse returns the error for a state that cannot be reached from the current one.
func (l Lead) refuse(requested LeadStatus) error {
	if requested == LeadConverted && l.Status != LeadLost {
		return ErrTransition.WithMessage("To convert a lead, use POST /leads/{id}/convert.").WithField("status")
	}
	if l.Status == LeadLost {
		return ErrTransition.WithMessage("The lead is lost. It can only become contacted.").WithField("status")
	}
	return ErrTransition.WithMessage("A lead that is %s cannot become %s.", l.Status, requested).WithField("status")
}

// CanBecomeCustomer returns an error on email if the lead has neither an e-mail address nor a telephone number.
func (l Lead) CanBecomeCustomer() error {
	if l.Email == nil && !hasText(l.Phone) {
		return apperr.Field("email", "The lead has no email address and no phone number. Add one of them, or send customer_id.")
	}
	return nil
}

// NewCustomer returns the customer that the lead becomes, if CanBecomeCustomer returns no error.
func (l Lead) NewCustomer(id CustomerID) Customer {
	c := Customer{ID: id, FirstName: l.FirstName, LastName: l.LastName, Phone: l.Phone, Company: l.Company}
	if l.Email != nil {
		c.Email = *l.Email
	}
	return c
}

// Erase returns the lead without personal data.
func (l Lead) Erase() Lead {
	l.FirstName = ""
	l.LastName, l.Email, l.Phone, l.Company, l.Message, l.LostReason, l.Metadata = nil, nil, nil, nil, nil, nil, nil
	return l
}

// SearchTerms returns the search terms of the lead.
func (l Lead) SearchTerms() []string {
	return append(searchTerms(&l.FirstName, l.LastName, l.Email, l.Company), phoneEntries(l.Phone)...)
}
