package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// Accounts are the use cases of gateway accounts.
type Accounts struct {
	DB      *pg.DB
	Store   store.Accounts
	Gateway Gateway
	Now     func() time.Time
}

// KeyError reports that the payment gateway does not accept a secret key or did not respond.
type KeyError struct{ error }

// Unwrap returns the gateway's response.
func (e *KeyError) Unwrap() error { return e.error }

// Error implements error.
func (e *KeyError) Error() string {
	return "the payment gateway does not accept the secret key: " + e.error.Error()
}

// errOtherAccount reports that new keys belong to another account than the connected one.
var errOtherAccount = errors.New("the keys belong to another account")

// Connect connects the account of the keys to the caller's tenant in its mode. It calls the gateway first, so that it stores only
// keys that work. An account that is or was connected gets the new keys, so that they are used for its earlier payments.
func (a *Accounts) Connect(ctx context.Context, live bool, keys domain.Keys) (domain.Account, error) {
	if err := keys.Check(live); err != nil {
		return domain.Account{}, err
	}
	id, country, err := a.Gateway.Account(ctx, keys.Secret)
	if err != nil {
		return domain.Account{}, &KeyError{err}
	}
	var out domain.Account
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		current, err := a.Store.ConnectedForUpdate(ctx, tx)
		if errors.Is(err, domain.ErrNotConfigured) {
			current, err = a.Store.DisconnectedForUpdate(ctx, tx, id)
		}
		before := current
		switch {
		case errors.Is(err, domain.ErrNotConfigured):
			current = domain.Account{ID: ids.New[domain.AccountPrefix](), Provider: domain.Stripe, Account: id, Events: domain.EventsMissing}
		case err != nil:
			return err
		case current.Account != id:
			return domain.ErrConnected
		}
		current.Country, current.PublishableKey = country, keys.Publishable
		current.SecretKey, current.SecretLast4, current.DisconnectedAt = keys.Secret, domain.Last4(string(keys.Secret)), nil
		out, err = a.save(ctx, tx, before, current, keys.Webhook, a.Now())
		return err
	})
	return out, err
}

// Show returns the connected account without its secret key, or domain.ErrNotConfigured.
func (a *Accounts) Show(ctx context.Context) (domain.Account, error) {
	return a.Store.Shown(ctx, a.DB.Read(ctx))
}

// Rotate replaces the keys of the connected account; an empty key stays unchanged. The previous webhook secret remains valid for
// overlap.
func (a *Accounts) Rotate(ctx context.Context, live bool, keys domain.Keys, overlap time.Duration) (domain.Account, error) {
	current, err := a.Show(ctx)
	if err != nil {
		return domain.Account{}, err
	}
	given := keys
	if keys.Secret == "" {
		opened, err := a.Store.Account(ctx, a.DB.Read(ctx), current.ID)
		if err != nil {
			return domain.Account{}, err
		}
		keys.Secret = opened.SecretKey
	}
	if keys.Publishable == "" {
		keys.Publishable = current.PublishableKey
	}
	if err := keys.Check(live); err != nil {
		return domain.Account{}, err
	}
	if given.Secret != "" {
		id, _, err := a.Gateway.Account(ctx, keys.Secret)
		if err != nil {
			return domain.Account{}, &KeyError{err}
		}
		if id != current.Account {
			return domain.Account{}, errOtherAccount
		}
	}
	var out domain.Account
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		current, err := a.Store.ConnectedForUpdate(ctx, tx)
		if err != nil {
			return err
		}
		before := current
		current.PublishableKey, current.SecretKey, current.SecretLast4 = keys.Publishable, keys.Secret, domain.Last4(string(keys.Secret))
		out, err = a.save(ctx, tx, before, current, given.Webhook, a.Now().Add(overlap))
		return err
	})
	return out, err
}

// Disconnect ends the connection. The service still uses the account's keys to read intents created with the account.
func (a *Accounts) Disconnect(ctx context.Context) (out domain.Account, err error) {
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		current, err := a.Store.ConnectedForUpdate(ctx, tx)
		if err != nil {
			return err
		}
		before, now := current, a.Now().UTC()
		current.DisconnectedAt = &now
		out, err = a.save(ctx, tx, before, current, "", now)
		return err
	})
	return out, err
}

// noteEvents writes whether the gateway's events reach this platform, according to a run of the reconciler.
func (a *Accounts) noteEvents(ctx context.Context, id domain.AccountID, run domain.Reconciliation) error {
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		before, signed, err := a.Store.ForUpdate(ctx, tx, id)
		if err != nil || before.DisconnectedAt != nil {
			return err
		}
		after := before
		if after.Events = run.Events(before.Events, signed); after.Events == before.Events {
			return nil
		}
		_, err = a.save(ctx, tx, before, after, "", time.Time{})
		return err
	})
}

// save writes an account, adds its new webhook secret, if one is given, and emits the event. Earlier secrets remain valid until end.
func (a *Accounts) save(
	ctx context.Context, tx pg.Tx, before, next domain.Account, webhook domain.Secret, end time.Time,
) (saved domain.Account, err error) {
	if webhook != "" {
		next.Events = domain.EventsOK
	}
	if next.Version == 0 {
		saved, err = a.Store.Insert(ctx, tx, next)
	} else {
		saved, err = a.Store.Update(ctx, tx, next)
	}
	if err == nil && webhook != "" {
		err = a.Store.AddWebhookSecret(ctx, tx, saved.ID, webhook, end)
	}
	if err != nil {
		return domain.Account{}, err
	}
	return saved, emitAccount(ctx, tx, before, saved, webhook)
}

// emitAccount adds the event of a change. before has no version if the account is new. The relay of the running service publishes
// the event.
func emitAccount(ctx context.Context, tx pg.Tx, before, after domain.Account, webhook domain.Secret) error {
	body, err := renderAccount(after, webhook)
	if err != nil {
		return err
	}
	previous := json.RawMessage("{}")
	if before.Version > 0 {
		old, err := renderAccount(before, "")
		if err != nil {
			return err
		}
		previous = outbox.Diff(old, body)
	}
	return outbox.Add(ctx, tx, accountUpdated(after, body, previous))
}

func renderAccount(a domain.Account, webhook domain.Secret) (json.RawMessage, error) {
	return contract.Encode(internalapi.GatewayAccount{
		ID: a.ID.String(), Provider: a.Provider, Account: a.Account, Country: a.Country, PublishableKey: a.PublishableKey,
		SecretKeyLast4: a.SecretLast4, WebhookSecretLast4: domain.Last4(string(webhook)), Connected: a.DisconnectedAt == nil,
		Events: string(a.Events),
	})
}
