package domain

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/quota"
	"holdfast.dev/proto"
)

// FeedCap limits the calendar feeds of a tenant in one mode. The platform can set another number for a tenant.
var FeedCap = quota.Cap{Name: proto.CapFeeds.Name, Most: proto.CapFeeds.Default, Rows: "calendar feeds", Field: "name", Remedy: "Delete one first."}

// FeedPrefix is the prefix of a feed's id.
type FeedPrefix struct{}

// Prefix is "cf".
func (FeedPrefix) Prefix() string { return "cf" }

// FeedID is the id of a calendar feed.
type FeedID = ids.ID[FeedPrefix]

// Feed is an address at which calendar programs read bookings.
type Feed struct {
	ID             FeedID
	Name           string
	UnitID         UnitID // zero: all units
	IncludeDetails bool
	CreatedBy      string // the credential
	Version        int64
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// FeedHolder is the credential that holds a feed: a key, a grant, or an operator of the tenant. The feed ends with it.
type FeedHolder struct {
	TenantID ids.Tenant
	ID       string
}

// EndedHolder is a credential that has ended or, if it has a successor, was rotated.
type EndedHolder struct {
	FeedHolder

	Successor string
}

// FeedWithURL is a feed with its address, which is known only when the feed is created.
type FeedWithURL struct {
	Feed

	URL string
}

// FeedInput is the input for a new feed. UnitID is nil for all units.
type FeedInput struct {
	Name           string
	UnitID         *string
	IncludeDetails bool
}

// NewFeed creates a feed with a new id.
func NewFeed(in FeedInput) (Feed, error) {
	f := Feed{ID: ids.New[FeedPrefix](), Name: in.Name, IncludeDetails: in.IncludeDetails}
	if in.UnitID == nil {
		return f, nil
	}
	var err error
	if f.UnitID, err = ids.Parse[UnitPrefix](*in.UnitID); err != nil {
		return Feed{}, ErrFeedUnit
	}
	return f, nil
}

const (
	tokenDigits = "abcdefghijklmnopqrstuvwxyz234567" // of RFC 4648, in lower case
	tokenLength = 32
)

// NewFeedToken creates the secret part of a feed's address: 32 random base32 digits, which are 160 bits.
func NewFeedToken() string {
	return strings.ToLower(rand.Text() + rand.Text())[:tokenLength]
}

// FeedTokenHash returns the SHA-256 of a token, the only form in which it is stored. It returns false for a malformed token.
func FeedTokenHash(token string) ([sha256.Size]byte, bool) {
	if len(token) != tokenLength || strings.Trim(token, tokenDigits) != "" {
		return [sha256.Size]byte{}, false
	}
	return sha256.Sum256([]byte(token)), true
}

// Bounds of a calendar. The bookings furthest from today are omitted first.
const (
	CalendarDaysBefore = 90
	CalendarDaysAfter  = 400
	// CalendarAhead and CalendarBehind limit the number of events from today on and before today.
	CalendarAhead  = 15_000
	CalendarBehind = 5_000
	// CalendarBytesAhead and CalendarBytesBehind limit the texts of these events. Even with each character escaped, the largest
	// calendar is therefore below the 16 MiB that the gateway forwards.
	CalendarBytesAhead  = 5 << 20
	CalendarBytesBehind = 2 << 20
	// CalendarClosures limits the number of closures.
	CalendarClosures = 1000
)

// Calendar is the content of a feed.
type Calendar struct {
	Name     string
	Loc      *time.Location // the operator's
	Today    civil.Date
	Entries  []CalendarEntry // by day
	Closures []Closure       // by start
}

// CalendarEntry is one booking in a calendar.
type CalendarEntry struct {
	ID               BookingID
	Number           string
	Status           Status
	Version          int64
	UpdatedAt        time.Time
	HoldExpiresAt    *time.Time
	Day              civil.Date
	Start            *civil.Clock // nil: a whole day
	StartsAt, EndsAt *time.Time
	Loc              *time.Location
	Title            *string // name of the unit, the service or the package
	Seats            *int    // that it takes on a shared unit; 0: all; nil: not shared
	Customer, Notes  *string // nil unless the feed shows details
}

// Timed reports whether the booking has a time of day.
func (e CalendarEntry) Timed() bool { return e.Start != nil && e.StartsAt != nil && e.EndsAt != nil }

// At returns the entry as every reader sees the booking: a lapsed hold is expired.
func (e CalendarEntry) At(now time.Time) CalendarEntry {
	b := Booking{Status: e.Status, Version: e.Version, HoldExpiresAt: e.HoldExpiresAt}.At(now)
	e.Status, e.Version = b.Status, b.Version
	return e
}
