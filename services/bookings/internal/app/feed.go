package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/quota"
	"holdfast.dev/libs/tenantstate"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// CalendarLimits limit the memory of calendars in a process. Each calendar takes up to about 40 MiB while it is built.
var CalendarLimits = quota.Limits{Work: "calendars", All: 4, PerTenant: 1, Waiting: 15, Wait: 5 * time.Second, Rests: true}

// Feeds contains the use cases of calendar feeds. Create it with NewFeeds.
type Feeds struct {
	FeedOptions

	base  string // base URL of addresses
	slots *quota.Slots
}

// FeedOptions are what Feeds uses. All fields are required.
type FeedOptions struct {
	DB          *pg.DB
	Wake        func() // notifies the relay that an event was committed
	PublicURL   string // at which clients reach the gateway
	Now         func() time.Time
	Credentials Credentials
}

// NewFeeds creates the use cases.
func NewFeeds(o FeedOptions) *Feeds {
	return &Feeds{FeedOptions: o, base: strings.TrimRight(o.PublicURL, "/") + "/api/v1/calendar/", slots: quota.NewSlots(CalendarLimits)}
}

// Create creates a feed with an address. Only the response to the creation shows the address.
func (a *Feeds) Create(ctx context.Context, tx pg.Tx, in domain.FeedInput) (domain.FeedWithURL, error) {
	f, err := domain.NewFeed(in)
	if err != nil {
		return domain.FeedWithURL{}, err
	}
	if err := checkFeedUnit(ctx, tx, f); err != nil {
		return domain.FeedWithURL{}, err
	}
	there, err := store.CountFeeds(ctx, tx)
	if err != nil {
		return domain.FeedWithURL{}, err
	}
	if err := domain.FeedCap.For(caller.FromContext(ctx).Caps).Room(there); err != nil {
		return domain.FeedWithURL{}, err
	}
	f.CreatedBy = caller.FromContext(ctx).Credential
	token := domain.NewFeedToken()
	hash, _ := domain.FeedTokenHash(token) // a new token is well-formed
	f, err = store.InsertFeed(ctx, tx, f, hash[:], caller.FromContext(ctx).Timezone)
	if err != nil {
		return domain.FeedWithURL{}, err
	}
	return domain.FeedWithURL{Feed: f, URL: a.base + token + ".ics"}, updated(ctx, tx, a.Wake, view.Feed, nil, f, feedCreated(f))
}

// checkFeedUnit returns the 422 for a unit that the caller does not have.
func checkFeedUnit(ctx context.Context, q pg.Q, f domain.Feed) error {
	if f.UnitID.IsZero() {
		return nil
	}
	have, err := store.KnownUnits(ctx, q, []domain.UnitID{f.UnitID})
	if err == nil && len(have) == 0 {
		return domain.ErrFeedUnit
	}
	return err
}

// Delete deletes a feed. Its address becomes unknown when the transaction ends.
func (a *Feeds) Delete(ctx context.Context, tx pg.Tx, id domain.FeedID, match patch.Precondition) error {
	f, err := store.Feed(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := match.Check(f.Version); err != nil {
		return err
	}
	return a.remove(ctx, tx, f)
}

func (a *Feeds) remove(ctx context.Context, tx pg.Tx, f domain.Feed) error {
	if err := store.DeleteFeed(ctx, tx, f.ID); err != nil {
		return err
	}
	return updated(ctx, tx, a.Wake, view.Feed, nil, f, feedDeleted(f))
}

// Open returns the feed of a token, or domain.ErrFeedNotFound. A malformed token is not looked up.
func (a *Feeds) Open(ctx context.Context, token string) (store.OpenFeed, error) {
	hash, ok := domain.FeedTokenHash(token)
	if !ok {
		return store.OpenFeed{}, domain.ErrFeedNotFound
	}
	return store.FeedByHash(ctx, a.DB.Read(ctx), hash[:])
}

// Calendar returns the calendar of a token's feed, in the tenant and mode of the feed. The feed of a suspended tenant returns
// tenantstate.ErrSuspended, and a feed whose credential has ended domain.ErrFeedNotFound.
func (a *Feeds) Calendar(ctx context.Context, token string) ([]byte, error) {
	f, err := a.Open(ctx, token)
	if err != nil {
		return nil, err
	}
	release, err := a.slots.Acquire(ctx, f.TenantID)
	if err != nil {
		return nil, err
	}
	defer release()
	from := caller.FromContext(ctx)
	from.Tenant, from.Mode, from.Timezone, from.Clock = f.TenantID, caller.ModeOf(f.Livemode), f.Timezone, f.Clock
	ctx = caller.With(ctx, from)
	if suspended, err := tenantstate.Suspended(ctx, a.DB.Read(ctx)); err != nil || suspended {
		return nil, cmp.Or(err, error(tenantstate.ErrSuspended))
	}
	if err := a.checkHolder(ctx, f); err != nil {
		return nil, err
	}
	return a.render(ctx, f)
}

// holderTimeout limits how long a calendar waits for the state of its feed's credential.
const holderTimeout = time.Second

// maxSuccessors is the number of rotations that a check follows. FeedHolders transfers a feed after each rotation, so the holder
// rarely has more than one successor.
const maxSuccessors = 4

// checkHolder returns domain.ErrFeedNotFound if the credential that holds the feed has ended. FeedHolders deletes the feed later. If
// identity does not respond within holderTimeout, the feed stays readable, as FeedHolders keeps it.
func (a *Feeds) checkHolder(ctx context.Context, f store.OpenFeed) error {
	holder, err := store.FeedHolder(ctx, a.DB.Read(ctx), f.ID)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, holderTimeout)
	defer cancel()
	for range maxSuccessors {
		if holder == "" {
			return nil
		}
		ended, err := a.Credentials.Ended(asking, []domain.FeedHolder{{TenantID: f.TenantID, ID: holder}})
		switch {
		case err != nil:
			obs.Add(ctx, slog.String("feed_holder", "unchecked: "+err.Error()))
			return ctx.Err()
		case len(ended) == 0:
			return nil
		}
		holder = ended[0].Successor
		if holder == "" {
			return domain.ErrFeedNotFound
		}
	}
	return nil
}

func (a *Feeds) render(ctx context.Context, f store.OpenFeed) ([]byte, error) {
	loc, err := civil.Location(f.Timezone)
	if err != nil {
		return nil, err
	}
	now := caller.FromContext(ctx).Now(a.Now())
	today := civil.DateOf(now.In(loc))
	first, last := today.AddDays(-domain.CalendarDaysBefore), today.AddDays(domain.CalendarDaysAfter)
	entries, err := store.Calendar(ctx, a.DB.Read(ctx), store.CalendarRange{
		From: first, Today: today, To: last,
		Unit: f.UnitID, Details: f.IncludeDetails,
	})
	if err != nil {
		return nil, err
	}
	for i := range entries {
		entries[i] = entries[i].At(now)
	}
	during := domain.Span{From: first.AddDays(-1).End(loc), To: last.End(loc)}
	closures, err := store.ClosuresDuring(ctx, a.DB.Read(ctx), during, unitOrNil(f.UnitID), domain.CalendarClosures)
	if err != nil {
		return nil, err
	}
	return view.Calendar(domain.Calendar{Name: f.Name, Loc: loc, Today: today, Entries: entries, Closures: closures}), nil
}

// unitOrNil returns the unit as a filter, in which nil selects all units.
func unitOrNil(id domain.UnitID) *domain.UnitID {
	if id.IsZero() {
		return nil
	}
	return &id
}

// holderBatch is the number of feeds that are checked in one batch.
const holderBatch = 500

// Credentials reports which credentials have ended. peers.Credentials implements it with calls to identity.
type Credentials interface {
	Ended(ctx context.Context, holders []domain.FeedHolder) ([]domain.EndedHolder, error)
}

// FeedHolders deletes the feeds whose credential has ended, and transfers them to the new credential after a rotation. It calls
// identity each time, so nothing is missed while Kafka or this service is down. Any number of processes can run it at the same
// time.
type FeedHolders struct {
	Feeds  *Feeds
	Worker *pg.DB // worker role: finds the feeds of all tenants
	Log    *slog.Logger

	failing int
}

// Run checks every feed once. A feed that fails does not delay others, and is retried in the next run.
func (a *FeedHolders) Run(ctx context.Context) error {
	var after store.HeldFeed
	var failed []error
	for {
		var list []store.HeldFeed
		err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			list, err = store.HeldFeeds(ctx, tx, after, holderBatch)
			return err
		})
		if err != nil {
			return err
		}
		if len(list) > 0 {
			if err := a.check(ctx, list); err != nil {
				failed = append(failed, err)
			}
			after = list[len(list)-1]
		}
		if len(list) < holderBatch {
			break
		}
	}
	if len(failed) > 0 && a.failing == 0 && ctx.Err() == nil {
		a.Log.WarnContext(ctx, "credentials of calendar feeds not checked", slog.Any("error", errors.Join(failed...)))
	}
	a.failing = len(failed)
	return nil
}

// check processes a batch of feeds. It deletes the feeds whose credential has ended, and transfers those whose credential was
// rotated.
func (a *FeedHolders) check(ctx context.Context, list []store.HeldFeed) error {
	holders := make([]domain.FeedHolder, len(list))
	for i, f := range list {
		holders[i] = domain.FeedHolder{TenantID: f.TenantID, ID: f.Holder}
	}
	ended, err := a.Feeds.Credentials.Ended(ctx, holders)
	if err != nil {
		return err
	}
	by := make(map[domain.FeedHolder]domain.EndedHolder, len(ended))
	for _, e := range ended {
		by[e.FeedHolder] = e
	}
	var failed []error
	for i, f := range list {
		if e, ok := by[holders[i]]; ok {
			if err := a.end(ctx, f, e); err != nil {
				failed = append(failed, fmt.Errorf("feed %s: %w", f.ID, err))
			}
		}
	}
	return errors.Join(failed...)
}

func (a *FeedHolders) end(ctx context.Context, f store.HeldFeed, e domain.EndedHolder) error {
	ctx = caller.With(ctx, caller.Service("bookings", f.TenantID, caller.ModeOf(f.Livemode)))
	err := a.Feeds.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if e.Successor != "" {
			return store.PassFeed(ctx, tx, f.ID, f.Holder, e.Successor)
		}
		feed, err := store.Feed(ctx, tx, f.ID)
		if err != nil {
			return err
		}
		return a.Feeds.remove(ctx, tx, feed)
	})
	if errors.Is(err, domain.ErrFeedNotFound) {
		return nil // another process did it first
	}
	return err
}
