package app

import (
	"context"
	"log/slog"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"
)

// errLive reports that live mode always uses real time.
var errLive = apperr.ErrMode.WithMessage("Live mode has no test clock. Use a test key.")

// ClockOwner is identity, which owns each tenant's test clock.
type ClockOwner interface {
	// SetClock freezes the clock of the caller's tenant, or, if at is nil, returns it to real time.
	SetClock(ctx context.Context, at *time.Time) (testclock.Clock, error)
}

// QuoteExpirer is customers, whose quotes also expire by the test clock.
type QuoteExpirer interface {
	// ExpireQuotes expires some quotes of the caller's tenant that are due by the caller's test clock, and reports whether more
	// are due.
	ExpireQuotes(ctx context.Context) (more bool, err error)
}

// Clocks contains the use cases of the test clock.
type Clocks struct {
	DB       *pg.DB
	Owner    ClockOwner
	Bookings *Bookings
	Quotes   QuoteExpirer
	Log      *slog.Logger
	// MaxWait is how long a request waits for the expiry of quotes. After that, the worker of customers completes the expiry.
	MaxWait time.Duration
}

// Allowed returns a 403 in live mode.
func (a *Clocks) Allowed(ctx context.Context) error {
	if caller.FromContext(ctx).Mode != caller.Test {
		return errLive
	}
	return nil
}

// setClock is the operation that sets the test clock at identity.
type setClock struct {
	*Clocks

	given string
	now   time.Time
}

// Set returns the operation that freezes the clock at a time. The clock only moves forward. The operation returns the time of the
// clock after everything due by then is done.
func (a *Clocks) Set(given string) operation.Operation[time.Time] {
	return &setClock{Clocks: a, given: given}
}

// Name implements operation.Operation. It is empty, because the same request can set the clock again.
func (*setClock) Name() string { return "" }

// Begin implements operation.Operation.
func (*setClock) Begin(context.Context, pg.Tx, string) (done bool, err error) { return false, nil }

// Call sets the clock.
func (o *setClock) Call(ctx context.Context) (err error) {
	if o.now, err = o.freeze(ctx, o.given); operation.Refused(err) {
		return &operation.RefusedError{Err: err}
	}
	return err
}

// Finish returns the time that the clock shows.
func (o *setClock) Finish(context.Context, pg.Tx) (time.Time, error) { return o.now, nil }

// Release implements operation.Operation.
func (*setClock) Release(context.Context, pg.Tx) error { return nil }

// freeze sets the clock, which only moves forward. It returns the time of the clock after everything due by then is done. Each step
// can be repeated. If a process crashes after identity's response, the rest is completed by the event that identity published, by
// the worker, or by the same request sent again. The caller has called Allowed.
func (a *Clocks) freeze(ctx context.Context, given string) (time.Time, error) {
	loc, err := civil.Location(caller.FromContext(ctx).Timezone)
	if err != nil {
		return time.Time{}, err
	}
	at, err := civil.ParseInstant(given, loc)
	if err != nil {
		return time.Time{}, apperr.Field("now", "%s", err)
	}
	clock, err := a.set(ctx, &at)
	if err != nil {
		return time.Time{}, err
	}
	if err := a.Bookings.ExpireAll(ctx); err != nil {
		return time.Time{}, err
	}
	a.expireQuotes(ctx, clock)
	return clock.Now(at), nil
}

// expireQuotes requests that customers expire the quotes that are due by the new clock. A failure is not an error of the request:
// the clock has moved, every reader sees these quotes as expired, and the worker of customers stores the expiry later.
func (a *Clocks) expireQuotes(ctx context.Context, clock testclock.Clock) {
	ctx, cancel := context.WithTimeout(underClock(ctx, clock), a.MaxWait)
	defer cancel()
	for more := true; more; {
		var err error
		if more, err = a.Quotes.ExpireQuotes(ctx); err != nil {
			a.Log.WarnContext(ctx, "quotes due by the test clock not expired; the worker of customers expires them", slog.Any("error", err))
			return
		}
	}
}

// underClock returns ctx with this state of the test clock of the caller's tenant.
func underClock(ctx context.Context, clock testclock.Clock) context.Context {
	c := caller.FromContext(ctx)
	c.Clock, c.PolicyVersion = clock.FrozenAt, clock.Version
	return caller.With(ctx, c)
}

// Reset returns the tenant to real time.
func (a *Clocks) Reset(ctx context.Context) error {
	if err := a.Allowed(ctx); err != nil {
		return err
	}
	_, err := a.set(ctx, nil)
	return err
}

func (a *Clocks) set(ctx context.Context, at *time.Time) (testclock.Clock, error) {
	clock, err := a.Owner.SetClock(ctx, at)
	if err != nil {
		return testclock.Clock{}, err
	}
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return testclock.Put(ctx, tx, clock) })
	return clock, err
}
