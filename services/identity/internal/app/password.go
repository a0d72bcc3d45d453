package app

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/alexedwards/argon2id"

	"holdfast.dev/libs/apperr"
)

// PasswordMemory is the memory for hashing one password, in bytes.
const PasswordMemory = 64 << 20

// argon specifies the cost of a password hash: RFC 9106 with 64 MiB and one pass, which exceeds the minimum of 46 MiB in OWASP's
// cheat sheet.
var argon = &argon2id.Params{Memory: PasswordMemory >> 10, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// Passwords hashes and compares passwords. Each computation uses 64 MiB, so only a few run at the same time.
type Passwords struct {
	places  chan struct{}
	waiting atomic.Int64
	dummy   func() string
}

// NewPasswords allows atOnce parallel computations.
func NewPasswords(atOnce int) *Passwords {
	return &Passwords{places: make(chan struct{}, atOnce), dummy: sync.OnceValue(func() string {
		hash, err := argon2id.CreateHash("of an account that does not exist", argon)
		if err != nil {
			panic(fmt.Sprintf("argon2id: %v", err)) // the parameters are constants
		}
		return hash
	})}
}

// Hash returns the argon2id hash of a password, in the PHC string format.
func (p *Passwords) Hash(ctx context.Context, password string) (hash string, err error) {
	err = p.inPlace(ctx, func() (err error) {
		hash, err = argon2id.CreateHash(password, argon)
		return err
	})
	return hash, err
}

// Matches reports whether a password matches the hash. It takes the same time for an account without a hash, which never matches.
func (p *Passwords) Matches(ctx context.Context, password string, hash *string) (ok bool, err error) {
	against := p.dummy()
	if hash != nil {
		against = *hash
	}
	err = p.inPlace(ctx, func() (err error) {
		ok, err = argon2id.ComparePasswordAndHash(password, against)
		return err
	})
	return ok && hash != nil, err
}

// inPlace waits for a free place until ctx ends.
func (p *Passwords) inPlace(ctx context.Context, compute func() error) error {
	p.waiting.Add(1)
	select {
	case p.places <- struct{}{}:
		p.waiting.Add(-1)
	case <-ctx.Done():
		p.waiting.Add(-1)
		return apperr.ErrUnavailable.WithCause(fmt.Errorf("all places for passwords were taken: %w", ctx.Err()))
	}
	defer func() { <-p.places }()
	if err := compute(); err != nil {
		return fmt.Errorf("argon2id: %w", err)
	}
	return nil
}
