package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// The kinds of counters of requests for a link that resets a password.
const (
	byResetAddress = "reset_address" // the email address
	byResetNetwork = "reset_network"
)

// maxResets is the maximum number of requests that wait in this process.
const maxResets = 100

// PasswordReset is a request for a link that sets a new password, by a person who is not signed in.
type PasswordReset struct {
	Email   string
	Network string // of the client
	By      domain.Origin
	Message func(link string) (subject, text string) // in the person's language
}

// PasswordResets mails links that set a new password. A request is only counted and queued, whether or not the address has an account, so
// neither the response nor its time shows which addresses have one. A process that stops loses its queue: the person requests another link.
type PasswordResets struct {
	app     *App
	queue   chan PasswordReset
	waiting atomic.Int64
}

// NewPasswordResets returns the resets of an app with a Mailer, or nil if it has none.
func NewPasswordResets(a *App) *PasswordResets {
	if a.Mailer == nil {
		return nil
	}
	return &PasswordResets{app: a, queue: make(chan PasswordReset, maxResets)}
}

// Request queues a request. It returns *WaitError if the address or the network requested too many links.
func (r *PasswordResets) Request(ctx context.Context, in PasswordReset) error {
	// The network comes first. While it must wait, its requests create no rows for the addresses that it names.
	err := r.app.attempt(ctx, in.By, domain.Operator{}, []throttled{
		{byResetNetwork, domain.SecretHash(in.Network), domain.ResetNetworkThrottle},
		{byResetAddress, domain.SecretHash(domain.FoldEmail(in.Email)), domain.ResetAddressThrottle},
	})
	if err != nil {
		return err
	}
	r.waiting.Add(1)
	select {
	case r.queue <- in:
		return nil
	default:
		r.waiting.Add(-1)
		return apperr.ErrUnavailable.WithCause(errors.New("too many links wait to be mailed"))
	}
}

// Waiting returns the number of requests that are not processed yet.
func (r *PasswordResets) Waiting() int { return int(r.waiting.Load()) }

// Run mails the requested links until ctx ends.
func (r *PasswordResets) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case in := <-r.queue:
			if err := r.mail(ctx, in); err != nil {
				r.app.Log.ErrorContext(ctx, "password reset link not mailed", slog.Any("error", err))
			}
			r.waiting.Add(-1)
		}
	}
}

// mail creates a link and mails it, if an operator who can sign in has the address.
func (r *PasswordResets) mail(ctx context.Context, in PasswordReset) error {
	a := r.app
	o, err := store.OperatorByEmail(ctx, a.DB.Read(ctx), in.Email)
	if errors.Is(err, domain.ErrOperatorNotFound) || err == nil && o.DisabledAt != nil {
		return nil
	}
	if err != nil {
		return err
	}
	token := apikey.Random(linkDigits)
	// The version of the operator stays: a stranger who requests a link must not interrupt a sign-in.
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.OperatorForUpdate(ctx, tx, o.ID); err != nil {
			return err
		}
		return store.SetLink(ctx, tx, store.NewLink{
			OperatorID: o.ID, Hash: domain.SecretHash(token), Purpose: domain.Reset, VerifiesAddress: true, Lifetime: domain.ResetLifetime, Now: a.now(),
		})
	})
	if err != nil {
		return err
	}
	if err := a.auditEverywhere(ctx, in.By, domain.OperatorReset, o.ID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	subject, text := in.Message(domain.LinkURL(a.AuthURL, token))
	return a.Mailer.Send(ctx, o.Email, subject, text)
}
