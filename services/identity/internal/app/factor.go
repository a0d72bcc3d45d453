package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/pquerna/otp/totp"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const (
	totpPeriod    = 30 * time.Second
	totpBytes     = 20
	recoveryCodes = 10
)

// totpStep returns the time step of the given code, or 0 if there is none: RFC 6238, with a tolerance of one step before and after
// the current one.
func (a *App) totpStep(o domain.Operator, code string) (int64, error) {
	if o.TOTPSecret == nil {
		return 0, nil
	}
	secret, err := a.Box.Open(o.TOTPSecret, domain.FactorBinding(o.ID))
	if err != nil {
		return 0, fmt.Errorf("second factor of %s: %w", o.ID, err)
	}
	return matchingStep(string(secret), code, a.Now())
}

func matchingStep(secret, code string, now time.Time) (int64, error) {
	present := now.Unix() / int64(totpPeriod.Seconds())
	for _, step := range []int64{present, present - 1, present + 1} {
		want, err := totp.GenerateCode(secret, time.Unix(step*int64(totpPeriod.Seconds()), 0))
		if err != nil {
			return 0, fmt.Errorf("second factor: %w", err)
		}
		if subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			return step, nil
		}
	}
	return 0, nil
}

// NewFactor creates the secret of a second factor, 160 random bits in base32 (RFC 4226, section 4). The secret takes effect when
// SetFactor receives a valid code.
func NewFactor() string {
	secret := make([]byte, totpBytes)
	_, _ = rand.Read(secret) // it never fails
	return base32.StdEncoding.EncodeToString(secret)
}

// SetFactor sets an operator's second factor if the code matches the secret, and returns the recovery codes. They are stored as
// hashes and shown only once.
func (a *App) SetFactor(ctx context.Context, by domain.Origin, id domain.OperatorID, secret, code string) (codes []string, err error) {
	step, err := matchingStep(secret, code, a.Now())
	if err != nil {
		return nil, err
	}
	if step == 0 || secret == "" {
		return nil, ErrSignIn
	}
	sealed, err := a.Box.Seal([]byte(secret), domain.FactorBinding(id))
	if err != nil {
		return nil, err
	}
	hashes := make([][]byte, recoveryCodes)
	for range recoveryCodes {
		codes = append(codes, newRecoveryCode())
	}
	for i, c := range codes {
		hashes[i] = domain.SecretHash(c)
	}
	_, err = a.writeOperator(ctx, id, func(tx pg.Tx, o *domain.Operator) error {
		o.TOTPSecret, o.TOTPStep = sealed, step
		return store.SetRecoveryCodes(ctx, tx, id, hashes)
	})
	if err != nil {
		return nil, err
	}
	return codes, a.auditEverywhere(ctx, by, domain.FactorChanged, id)
}

// newRecoveryCode creates a code of 16 base32 digits in groups of four: 80 bits.
func newRecoveryCode() string {
	digits := strings.ToLower(rand.Text())
	return digits[:4] + "-" + digits[4:8] + "-" + digits[8:12] + "-" + digits[12:16]
}

// EndFactor removes an operator's second factor.
func (a *App) EndFactor(ctx context.Context, by domain.Origin, id domain.OperatorID) error {
	_, err := a.writeOperator(ctx, id, func(tx pg.Tx, o *domain.Operator) error {
		o.TOTPSecret = nil
		return store.SetRecoveryCodes(ctx, tx, id, nil)
	})
	if err != nil {
		return err
	}
	return a.auditEverywhere(ctx, by, domain.FactorChanged, id)
}
