package app

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// NewKey describes the key to create. Scopes is "all" or a comma-separated list.
type NewKey struct {
	Tenant             ids.Tenant
	Mode, Name, Scopes string
	ExpiresAt          *time.Time // nil: it does not expire
}

// CreateKey creates an API key. The secret cannot be read again.
func (a *App) CreateKey(ctx context.Context, by domain.Origin, n NewKey) (k domain.Key, secret string, err error) {
	mode, err := domain.ParseMode(n.Mode)
	if err != nil {
		return domain.Key{}, "", err
	}
	err = a.DB.Tx(scope(ctx, n.Tenant, mode), func(ctx context.Context, tx pg.Tx) error {
		k, secret, err = a.CreateKeyIn(ctx, tx, by, n)
		return err
	})
	return k, secret, err
}

// CreateKeyIn is CreateKey in a transaction of the key's tenant and mode.
func (a *App) CreateKeyIn(ctx context.Context, tx pg.Tx, by domain.Origin, n NewKey) (k domain.Key, secret string, err error) {
	mode, err := domain.ParseMode(n.Mode)
	if err != nil {
		return domain.Key{}, "", err
	}
	scopes, err := domain.ParseScopes(n.Scopes, a.Scopes)
	if err != nil {
		return domain.Key{}, "", err
	}
	if err := apperr.Join(domain.CheckKeyName(n.Name), domain.CheckKeyExpiry(n.ExpiresAt, a.now())); err != nil {
		return domain.Key{}, "", err
	}
	// Without this lock, a key created during a change of its tenant could miss the invalidation of that change.
	tenant, err := store.TenantForUpdate(ctx, tx)
	if err != nil {
		return domain.Key{}, "", err
	}
	return a.insertKey(ctx, tx, by, tenant, domain.Key{
		ID: domain.NewKeyID(), TenantID: n.Tenant, Livemode: mode == caller.Live, Name: n.Name, Scopes: scopes, ExpiresAt: n.ExpiresAt,
	})
}

// insertKey creates a key of a tenant with the given id in tx, which must have locked the tenant's row.
func (a *App) insertKey(ctx context.Context, tx pg.Tx, by domain.Origin, tenant domain.Tenant, k domain.Key) (created domain.Key, secret string, err error) {
	secret = apikey.New(k.Mode())
	hash := apikey.Hash(secret)
	k.Version, k.CreatedAt = 1, a.now()
	there, err := store.CountKeys(ctx, tx, a.now())
	if err != nil {
		return domain.Key{}, "", err
	}
	if err := domain.KeyPlaces.For(tenant.Caps).Room(there); err != nil {
		return domain.Key{}, "", err
	}
	if err := store.InsertKey(ctx, tx, k, hash[:]); err != nil {
		return domain.Key{}, "", err
	}
	return k, secret, a.audit(ctx, tx, by, change{domain.KeyCreated, k.ID.String(), nil, view.KeyForAdmin(k)})
}

// CreateKeyAs is CreateKey in a transaction of the platform.
func (a *App) CreateKeyAs(ctx context.Context, tx pg.Tx, by domain.Origin, n NewKey) (k domain.Key, secret string, err error) {
	err = pg.As(ctx, tx, caller.FromContext(scope(ctx, n.Tenant, caller.Mode(n.Mode))), func(ctx context.Context, tx pg.Tx) error {
		k, secret, err = a.CreateKeyIn(ctx, tx, by, n)
		return err
	})
	return k, secret, err
}

// KeyTenantMode returns the tenant and the mode of a key, for the command line, which manages all tenants.
func (a *App) KeyTenantMode(ctx context.Context, id domain.KeyID) (store.TenantMode, error) {
	return store.KeyTenantMode(ctx, a.DB.Read(ctx), id)
}

// Rotation says when a rotated key ends, and when its successor expires.
type Rotation struct {
	Overlap   time.Duration          // 0 revokes the rotated key
	ExpiresAt patch.Field[time.Time] // of the successor; absent: it has the lifetime of the rotated key
}

// RotateKey creates a key with the name and the scopes of another key of the given tenant and mode. The other key ends after the
// overlap, or immediately if the overlap is 0. RotateKey returns the new secret, which cannot be read again.
func (a *App) RotateKey(
	ctx context.Context, by domain.Origin, tenantMode store.TenantMode, id domain.KeyID, r Rotation,
) (k domain.Key, secret string, published bool, err error) {
	err = a.DB.Tx(scope(ctx, tenantMode.TenantID, caller.ModeOf(tenantMode.Livemode)), func(ctx context.Context, tx pg.Tx) error {
		k, secret, err = a.RotateKeyIn(ctx, tx, by, id, r)
		return err
	})
	if err != nil {
		return domain.Key{}, "", false, err
	}
	return k, secret, a.publish(ctx, tenantMode.TenantID), nil
}

// RotateKeyIn is RotateKey in a transaction of the key's tenant and mode. The caller must publish the invalidations afterwards.
func (a *App) RotateKeyIn(ctx context.Context, tx pg.Tx, by domain.Origin, id domain.KeyID, r Rotation) (k domain.Key, secret string, err error) {
	if err := apperr.Join(domain.CheckOverlap(r.Overlap), domain.CheckKeyExpiry(r.ExpiresAt.Pointer(), a.now())); err != nil {
		return domain.Key{}, "", err
	}
	tenant, err := store.TenantForUpdate(ctx, tx)
	if err != nil {
		return domain.Key{}, "", err
	}
	old, err := store.Key(ctx, tx, id)
	if err != nil {
		return domain.Key{}, "", err
	}
	next := domain.NewKeyID()
	ended, err := a.endKey(ctx, tx, tenant, rotation{old, next, r.Overlap})
	if err != nil {
		return domain.Key{}, "", err
	}
	expires := old.NextExpiry(a.now())
	r.ExpiresAt.SetNullable(&expires)
	k, secret, err = a.insertKey(ctx, tx, by, tenant, domain.Key{
		ID: next, TenantID: old.TenantID, Livemode: old.Livemode, Name: old.Name, Scopes: old.Scopes, ExpiresAt: expires,
	})
	if err != nil {
		return domain.Key{}, "", err
	}
	return k, secret, a.audit(ctx, tx, by, change{domain.KeyRotated, id.String(), view.KeyForAdmin(old), view.RotatedKey{AdminKey: view.KeyForAdmin(ended), Successor: k.ID.String()}})
}

// rotation is a key that ends after the overlap, with its successor.
type rotation struct {
	old     domain.Key
	next    domain.KeyID
	overlap time.Duration
}

// endKey writes the end of a rotated key, and adds its invalidation.
func (a *App) endKey(ctx context.Context, tx pg.Tx, tenant domain.Tenant, r rotation) (domain.Key, error) {
	rotated, err := r.old.Rotated(a.now(), r.overlap)
	if err != nil {
		return domain.Key{}, err
	}
	ended, err := store.EndKey(ctx, tx, rotated, r.next)
	if err != nil {
		return domain.Key{}, err
	}
	value := domain.Revoked
	if ended.RevokedAt == nil {
		value = strconv.FormatInt(ended.Version+tenant.Version, 10)
	}
	return ended, store.InvalidateKey(ctx, tx, ended.ID, value)
}

// RevokeKey ends a key permanently. If published is true, every gateway rejects it. While Redis is unavailable, published is false:
// gateways read their cached entries again within a second, and RetryPublish publishes the invalidation later. A second revocation
// changes nothing and publishes again.
func (a *App) RevokeKey(ctx context.Context, by domain.Origin, id domain.KeyID) (k domain.Key, published bool, err error) {
	tenantMode, err := a.KeyTenantMode(ctx, id)
	if err != nil {
		return domain.Key{}, false, err
	}
	return a.RevokeKeyAt(ctx, by, tenantMode, id)
}

// RevokeKeyAt is RevokeKey for a key of the given tenant and mode. It returns ErrKeyNotFound for any other key.
func (a *App) RevokeKeyAt(ctx context.Context, by domain.Origin, tenantMode store.TenantMode, id domain.KeyID) (k domain.Key, published bool, err error) {
	ctx = scope(ctx, tenantMode.TenantID, caller.ModeOf(tenantMode.Livemode))
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		k, err = a.revokeKeyIn(ctx, tx, by, id)
		return err
	})
	if err != nil {
		return domain.Key{}, false, err
	}
	return k, a.publish(ctx, tenantMode.TenantID), nil
}

// RevokeKeyAs is RevokeKeyAt in a transaction of the platform. The caller must publish the invalidations afterwards.
func (a *App) RevokeKeyAs(ctx context.Context, tx pg.Tx, by domain.Origin, tenant ids.Tenant, id domain.KeyID) (k domain.Key, err error) {
	err = a.asKey(ctx, tx, tenant, id, func(ctx context.Context, tx pg.Tx) error {
		k, err = a.revokeKeyIn(ctx, tx, by, id)
		return err
	})
	return k, err
}

// RotateKeyAs is RotateKey in a transaction of the platform. The caller must publish the invalidations afterwards.
func (a *App) RotateKeyAs(
	ctx context.Context, tx pg.Tx, by domain.Origin, tenant ids.Tenant, id domain.KeyID, r Rotation,
) (k domain.Key, secret string, err error) {
	err = a.asKey(ctx, tx, tenant, id, func(ctx context.Context, tx pg.Tx) error {
		k, secret, err = a.RotateKeyIn(ctx, tx, by, id, r)
		return err
	})
	return k, secret, err
}

// asKey runs fn in the tenant and the mode of a key. It returns ErrKeyNotFound for a key of another tenant.
func (a *App) asKey(ctx context.Context, tx pg.Tx, tenant ids.Tenant, id domain.KeyID, fn func(ctx context.Context, tx pg.Tx) error) error {
	tenantMode, err := store.KeyTenantMode(ctx, tx, id)
	if err != nil || tenantMode.TenantID != tenant {
		return cmp.Or(err, error(domain.ErrKeyNotFound))
	}
	return pg.As(ctx, tx, caller.FromContext(scope(ctx, tenant, caller.ModeOf(tenantMode.Livemode))), fn)
}

// revokeKeyIn revokes a key in a transaction of its tenant and mode.
func (a *App) revokeKeyIn(ctx context.Context, tx pg.Tx, by domain.Origin, id domain.KeyID) (domain.Key, error) {
	if _, err := store.TenantForUpdate(ctx, tx); err != nil {
		return domain.Key{}, err
	}
	before, err := store.Key(ctx, tx, id)
	if err != nil {
		return domain.Key{}, err
	}
	if err := store.InvalidateKey(ctx, tx, id, domain.Revoked); err != nil || before.RevokedAt != nil {
		return before, err
	}
	k, err := store.RevokeKey(ctx, tx, id, a.now())
	if err != nil {
		return domain.Key{}, err
	}
	return k, a.audit(ctx, tx, by, change{domain.KeyRevoked, k.ID.String(), view.KeyForAdmin(before), view.KeyForAdmin(k)})
}

// Keys returns a tenant's keys of both modes, newest first.
func (a *App) Keys(ctx context.Context, tenant ids.Tenant) ([]domain.Key, error) {
	var all []domain.Key
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		ctx := scope(ctx, tenant, mode)
		keys, err := store.Keys(ctx, a.DB.Read(ctx), 0)
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
	}
	slices.SortFunc(all, func(x, y domain.Key) int { return y.CreatedAt.Compare(x.CreatedAt) })
	return all, nil
}

// KeyPage returns at most limit keys of a tenant and mode that are older than the key before, newest first, and whether there are
// more.
func (a *App) KeyPage(ctx context.Context, of store.TenantMode, before domain.KeyID, limit int) (keys []domain.Key, more bool, err error) {
	ctx = scope(ctx, of.TenantID, caller.ModeOf(of.Livemode))
	keys, err = store.KeyPage(ctx, a.DB.Read(ctx), before, limit+1)
	more = len(keys) > limit
	return keys[:min(len(keys), limit)], more, err
}

const (
	lastUsePoll = 5 * time.Second
	lastUseMax  = 10_000 // maximum number of keys recorded between two writes; other keys are recorded at their next look-up
)

// LastUse collects the last use of keys and writes it periodically, so that a look-up never waits for the write.
type LastUse struct {
	Worker *pg.DB
	Log    *slog.Logger

	mu   sync.Mutex
	used map[domain.KeyID]time.Time
}

// Note records that a key was used.
func (l *LastUse) Note(id domain.KeyID, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == nil {
		l.used = map[domain.KeyID]time.Time{}
	}
	if _, known := l.used[id]; known || len(l.used) < lastUseMax {
		l.used[id] = at
	}
}

// Write writes the uses recorded since the last write. After a failure, they are retained for the next write.
func (l *LastUse) Write(ctx context.Context) error {
	l.mu.Lock()
	used := l.used
	l.used = nil
	l.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	err := l.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.TouchKeys(ctx, tx, used) })
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		maps.Copy(used, l.used) // entries from the meantime are newer
		l.used = used
	}
	return err
}

// Run writes every few seconds until ctx ends, and one last time after that.
func (l *LastUse) Run(ctx context.Context) error {
	tick := time.NewTicker(lastUsePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			return l.Write(last)
		case <-tick.C:
			if err := l.Write(ctx); err != nil {
				l.Log.WarnContext(ctx, "last use of API keys not recorded; trying again", slog.Any("error", err))
			}
		}
	}
}
