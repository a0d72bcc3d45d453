package store_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/redistest"
	"holdfast.dev/libs/redisx"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// TestPublishesToACluster checks that invalidations of keys on different nodes are published together, and that a version that
// arrives late does not overwrite a tombstone.
func TestPublishesToACluster(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Cluster(t, nil)
	client, err := redisx.Open(address, redisx.Options{Timeout: 2 * time.Second, PoolSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	r := store.Redis{Client: client}
	list := make([]domain.Invalidation, 30)
	for i := range list {
		list[i] = domain.Invalidation{TenantID: ids.New[ids.TenantPrefix](), KeyID: domain.NewKeyID(), Value: domain.Revoked}
		if i%2 == 1 {
			list[i].Value = "7"
		}
	}
	late := make([]domain.Invalidation, len(list))
	for i, s := range list {
		late[i] = s
		late[i].Value = "6"
	}
	for _, published := range [][]domain.Invalidation{list, late, list} {
		if err := r.Publish(t.Context(), published); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range list {
		key := "st:{" + s.TenantID.String() + "}:" + s.KeyID.String()
		if v, err := client.Get(t.Context(), key).Result(); v != s.Value || err != nil {
			t.Errorf("%s holds %q, want %q: %v", key, v, s.Value, err)
		}
		if ttl := client.TTL(t.Context(), key).Val(); ttl <= 0 || ttl > s.Lifetime() {
			t.Errorf("%s lives %v", key, ttl)
		}
	}
}
