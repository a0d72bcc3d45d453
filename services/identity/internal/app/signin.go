package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// ErrSignIn reports a wrong address or password. It does not reveal which of them is wrong.
var ErrSignIn = errors.New("the e-mail address or the password is wrong")

// WaitError reports that too many attempts failed, and when the next one is allowed.
type WaitError struct{ After time.Duration }

// Error implements error.
func (e *WaitError) Error() string { return "too many attempts to sign in: wait " + e.After.String() }

// SignIn is an attempt to sign in.
type SignIn struct {
	Email, Password string
	Browser         string // random text in the browser's own cookie
	Address         string // the network of the client
	By              domain.Origin
}

// The kinds of throttled counters.
const (
	byAccount = "account"
	byBrowser = "browser"
	byAddress = "address"
	byTenant  = "tenant" // the tenant's invitations
)

// throttled is one counter that an attempt must pass.
type throttled struct {
	kind  string
	hash  []byte
	limit domain.Throttle
}

// SignIn checks a password. The error is ErrSignIn for a wrong password, an unknown account and a disabled account, after the same
// time. It is *WaitError if too many attempts failed. Failures elsewhere do not delay a browser that the operator has used before.
func (a *App) SignIn(ctx context.Context, in SignIn) (o domain.Operator, err error) {
	defer func() { a.Metrics.signedIn(err) }()
	o, err = store.OperatorByEmail(ctx, a.DB.Read(ctx), in.Email)
	if err != nil && !errors.Is(err, domain.ErrOperatorNotFound) {
		return domain.Operator{}, err
	}
	counts, err := a.counts(ctx, o, in)
	if err != nil {
		return domain.Operator{}, err
	}
	if err := a.attempt(ctx, in.By, o, counts); err != nil {
		return domain.Operator{}, err
	}
	ok, err := a.Passwords.Matches(ctx, in.Password, o.PasswordHash)
	if err != nil {
		return domain.Operator{}, err
	}
	if !ok || o.DisabledAt != nil {
		return domain.Operator{}, ErrSignIn
	}
	return o, a.forget(ctx, counts)
}

// counts returns the counters of an attempt: only the browser's if it is known, otherwise those of the account and the address.
func (a *App) counts(ctx context.Context, o domain.Operator, in SignIn) ([]throttled, error) {
	known, err := store.KnowsBrowser(ctx, a.DB.Read(ctx), o.ID, domain.SecretHash(in.Browser))
	if err != nil {
		return nil, err
	}
	account := domain.FoldEmail(in.Email)
	if known {
		return []throttled{{byBrowser, domain.SecretHash(account + "\x00" + in.Browser), domain.BrowserThrottle}}, nil
	}
	// The address comes first. While it must wait, its attempts create no rows for the accounts that it tries.
	return []throttled{
		{byAddress, domain.SecretHash(in.Address), domain.AddressThrottle}, {byAccount, domain.SecretHash(account), domain.AccountThrottle},
	}, nil
}

// attempt counts an attempt as a failure before it is checked.
func (a *App) attempt(ctx context.Context, by domain.Origin, o domain.Operator, counts []throttled) error {
	var wait time.Duration
	delayed := false
	err := a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		wait, delayed = 0, false
		for _, c := range counts {
			failures, after, err := store.Attempt(ctx, tx, c.kind, c.hash, c.limit, a.now())
			if err != nil {
				return err
			}
			if wait = after; wait > 0 {
				return nil
			}
			delayed = delayed || failures == c.limit.Free && c.kind != byAddress
		}
		return nil
	})
	if err != nil {
		return err
	}
	if delayed && o.ID != (domain.OperatorID{}) {
		if err := a.auditEverywhere(ctx, by, domain.SignInDelayed, o.ID); err != nil {
			return err
		}
	}
	if wait > 0 {
		return &WaitError{wait}
	}
	return nil
}

// forget undoes the counting of a successful attempt as a failure. The counter of an account is reset. The counter of an address,
// which others can share, loses only this failure.
func (a *App) forget(ctx context.Context, counts []throttled) error {
	return a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		for _, c := range counts {
			err := store.ForgetAttempts(ctx, tx, c.kind, c.hash)
			if c.kind == byAddress {
				err = store.Forgive(ctx, tx, c.kind, c.hash, a.now())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// SignedIn records that an operator signed in, with their second factor if they have one.
func (a *App) SignedIn(ctx context.Context, by domain.Origin, id domain.OperatorID, browser string) error {
	err := a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return store.AddBrowser(ctx, tx, id, domain.SecretHash(browser), a.now())
	})
	if err != nil {
		return err
	}
	by.Actor = id.String()
	return a.auditEverywhere(ctx, by, domain.SignedIn, id)
}

// Operator returns an operator who may act, or ErrOperatorNotFound if they are disabled.
func (a *App) Operator(ctx context.Context, id domain.OperatorID) (domain.Operator, error) {
	o, err := store.Operator(ctx, a.DB.Read(ctx), id)
	if err == nil && o.DisabledAt != nil {
		return domain.Operator{}, domain.ErrOperatorNotFound
	}
	return o, err
}

// Memberships returns the tenants that an operator is a member of.
func (a *App) Memberships(ctx context.Context, id domain.OperatorID) ([]domain.MemberTenant, error) {
	return store.MembershipsOf(ctx, a.DB.Read(ctx), id)
}

// byFactor counts codes of a second factor.
const byFactor = "factor"

// Factor is an attempt to enter a code of a second factor.
type Factor struct {
	Operator domain.OperatorID
	Version  int64 // version of the operator when the password was entered
	Code     string
	Browser  string // random text in the browser's own cookie
	Address  string // the network of the client
	By       domain.Origin
}

// SecondFactor checks a code of an operator's authenticator app, or one of their recovery codes. The error is ErrSignIn for a wrong
// or used code, and if the account has changed since the password was entered.
func (a *App) SecondFactor(ctx context.Context, in Factor) (o domain.Operator, err error) {
	defer func() { a.Metrics.signedIn(err) }()
	o, err = a.Operator(ctx, in.Operator)
	if err != nil {
		return domain.Operator{}, err
	}
	code := strings.ToLower(strings.Join(strings.Fields(in.Code), ""))
	counts, err := a.factorCounts(ctx, in, code)
	if err != nil {
		return domain.Operator{}, err
	}
	if err := a.attempt(ctx, in.By, o, counts); err != nil {
		return domain.Operator{}, err
	}
	if o.Version != in.Version {
		return domain.Operator{}, ErrSignIn
	}
	ok, err := a.useFactor(ctx, o, code)
	if err != nil {
		return domain.Operator{}, err
	}
	if !ok {
		return domain.Operator{}, ErrSignIn
	}
	return o, a.forget(ctx, counts)
}

// factorCounts returns the counters of a code. A person who knows only the password must not block the operator. The operator's
// own browsers are therefore counted separately, and a recovery code, which cannot be guessed, is not counted.
func (a *App) factorCounts(ctx context.Context, in Factor, code string) ([]throttled, error) {
	if domain.IsRecoveryCode(code) {
		return nil, nil
	}
	known, err := store.KnowsBrowser(ctx, a.DB.Read(ctx), in.Operator, domain.SecretHash(in.Browser))
	if err != nil {
		return nil, err
	}
	by := func(what, text string, limit domain.Throttle) throttled {
		return throttled{byFactor, domain.SecretHash(in.Operator.String() + "\x00" + what + "\x00" + text), limit}
	}
	own := by("browser", in.Browser, domain.BrowserThrottle)
	if known {
		return []throttled{own}, nil
	}
	return []throttled{by("address", in.Address, domain.AddressThrottle), own, by("all", "", domain.FactorThrottle)}, nil
}

// useFactor marks a code of either kind as used.
func (a *App) useFactor(ctx context.Context, o domain.Operator, code string) (ok bool, err error) {
	step, err := a.totpStep(o, code)
	if err != nil {
		return false, err
	}
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if step != 0 {
			ok, err = store.UseTOTPStep(ctx, tx, o.ID, step)
		} else {
			ok, err = store.UseRecoveryCode(ctx, tx, o.ID, domain.SecretHash(code))
		}
		return err
	})
	return ok, err
}
