// Package ids creates and parses resource ids: a fixed prefix, an underscore and a UUIDv7 in sortable base32, as the TypeID
// specification 0.3 defines. Tables store the bare uuid.
package ids

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.jetify.com/typeid"
)

// Prefix names a kind of resource. Implementations are empty structs.
type Prefix interface{ Prefix() string }

// ErrMalformed reports that a string is not an id of the expected kind. A handler responds with a 404 or a 422.
var ErrMalformed = errors.New("malformed id")

// ID is the id of one kind of resource. The zero value means "none" and is stored as NULL.
type ID[P Prefix] struct{ uuid [16]byte }

// New creates a new id. Ids sort by the time at which they were created.
func New[P Prefix]() ID[P] {
	var p P
	tid, err := typeid.WithPrefix(p.Prefix())
	if err != nil {
		panic(fmt.Sprintf("ids: prefix %q: %v", p.Prefix(), err)) // the constant prefix is not a valid TypeID prefix
	}
	return ID[P]{uuid: [16]byte(tid.UUIDBytes())}
}

// FromUUID converts a stored uuid.
func FromUUID[P Prefix](u [16]byte) ID[P] { return ID[P]{uuid: u} }

// First returns a lower bound of the ids that are created at a time or later. A time before 1970 counts as 1970.
func First[P Prefix](at time.Time) ID[P] {
	ms := at.UnixMilli()
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	ms = max(ms, 1) // the zero id means "none"
	var id ID[P]
	binary.BigEndian.PutUint64(id.uuid[:], uint64(ms)<<16)
	return id
}

// Parse parses the public form. It returns ErrMalformed for everything except the exact canonical form.
func Parse[P Prefix](s string) (ID[P], error) {
	var p P
	tid, err := typeid.FromString(s)
	if err != nil || tid.Prefix() != p.Prefix() || tid.String() != s {
		return ID[P]{}, ErrMalformed
	}
	return ID[P]{uuid: [16]byte(tid.UUIDBytes())}, nil
}

// String returns the public form, or "" for the zero id.
func (id ID[P]) String() string {
	if id.IsZero() {
		return ""
	}
	var p P
	tid, err := typeid.FromUUIDBytesWithPrefix(p.Prefix(), id.uuid[:])
	if err != nil {
		return ""
	}
	return tid.String()
}

// IsZero reports whether the id is unset.
func (id ID[P]) IsZero() bool { return id.uuid == [16]byte{} }

// UUID returns the stored form.
func (id ID[P]) UUID() [16]byte { return id.uuid }

// Time returns the time at which the id was created, to the millisecond, as stored in its UUIDv7.
func (id ID[P]) Time() time.Time {
	ms := binary.BigEndian.Uint64(append([]byte{0, 0}, id.uuid[:6]...))
	return time.UnixMilli(int64(ms)).UTC()
}

// MarshalText implements encoding.TextMarshaler with the public form.
func (id ID[P]) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; "" is the zero id.
func (id *ID[P]) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = ID[P]{}
		return nil
	}
	parsed, err := Parse[P](string(b))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// SetUUID sets the id from a stored uuid. The uuid of zeros becomes the zero id.
func (id *ID[P]) SetUUID(u [16]byte) { id.uuid = u }

// Scan implements sql.Scanner for connections that libs/pg did not open. NULL becomes the zero id.
func (id *ID[P]) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*id = ID[P]{}
		return nil
	case string:
		u, err := hex.DecodeString(strings.ReplaceAll(v, "-", ""))
		if err != nil || len(u) != len(id.uuid) {
			return ErrMalformed
		}
		id.uuid = [16]byte(u)
		return nil
	default:
		return fmt.Errorf("%w: a stored id is a %T", ErrMalformed, src)
	}
}

// Value implements driver.Valuer for connections that libs/pg did not open. The zero id becomes NULL.
func (id ID[P]) Value() (driver.Value, error) {
	if id.IsZero() {
		return nil, nil
	}
	u := id.uuid
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16]), nil
}

// TenantPrefix and the others are the prefixes of resources that more than one service reads.
type (
	TenantPrefix     struct{}
	EventPrefix      struct{}
	RequestPrefix    struct{}
	CustomerPrefix   struct{}
	LeadPrefix       struct{}
	QuotePrefix      struct{}
	BookingPrefix    struct{}
	ServicePrefix    struct{}
	UnitPrefix       struct{}
	PackagePrefix    struct{}
	InvoicePrefix    struct{}
	CreditNotePrefix struct{}
	PaymentPrefix    struct{}
)

// Prefix implements Prefix.
func (TenantPrefix) Prefix() string { return "tn" }

// Prefix implements Prefix.
func (EventPrefix) Prefix() string { return "evt" }

// Prefix implements Prefix.
func (RequestPrefix) Prefix() string { return "req" }

// Prefix implements Prefix.
func (CustomerPrefix) Prefix() string { return "cu" }

// Prefix implements Prefix.
func (LeadPrefix) Prefix() string { return "ld" }

// Prefix implements Prefix.
func (QuotePrefix) Prefix() string { return "qt" }

// Prefix implements Prefix.
func (BookingPrefix) Prefix() string { return "bk" }

// Prefix implements Prefix.
func (ServicePrefix) Prefix() string { return "srv" }

// Prefix implements Prefix.
func (UnitPrefix) Prefix() string { return "un" }

// Prefix implements Prefix.
func (PackagePrefix) Prefix() string { return "pkg" }

// Prefix implements Prefix.
func (CreditNotePrefix) Prefix() string { return "cn" }

// Prefix implements Prefix.
func (InvoicePrefix) Prefix() string { return "inv" }

// Prefix implements Prefix.
func (PaymentPrefix) Prefix() string { return "pay" }

// Tenant and the others are ids that services send to each other.
type (
	Tenant     = ID[TenantPrefix]
	Event      = ID[EventPrefix]
	Request    = ID[RequestPrefix]
	Customer   = ID[CustomerPrefix]
	Lead       = ID[LeadPrefix]
	Quote      = ID[QuotePrefix]
	Booking    = ID[BookingPrefix]
	Service    = ID[ServicePrefix]
	Unit       = ID[UnitPrefix]
	Package    = ID[PackagePrefix]
	Invoice    = ID[InvoicePrefix]
	CreditNote = ID[CreditNotePrefix]
	Payment    = ID[PaymentPrefix]
)
