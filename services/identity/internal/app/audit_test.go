package app_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

func TestAuditSaysWhatHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, _ := w.key(t, tenant.ID, "test")
	if _, _, err := w.RevokeKey(t.Context(), cli, k.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantPatch{Name: patch.Value("New <name>")}); err != nil {
		t.Fatal(err)
	}
	records := workerQuery(t, w.Worker, func(ctx context.Context, q pg.Q) ([]domain.Record, error) {
		return store.Audit(ctx, q, tenant.ID, 0, 100)
	})
	want := []struct {
		action, object string
		live           bool
		before, after  string // a field of the object that must be there; "" wants none
	}{
		{domain.TenantCreated, tenant.ID.String(), true, "", `"name": "Demo"`},
		{domain.KeyCreated, k.ID.String(), false, "", `"revoked_at": null`},
		{domain.KeyRevoked, k.ID.String(), false, `"revoked_at": null`, `"revoked_at": "2`},
		{domain.TenantUpdated, tenant.ID.String(), true, `"name": "Demo"`, `"name": "New <name>"`},
	}
	if len(records) != len(want) {
		t.Fatalf("%d records, want %d", len(records), len(want))
	}
	for i, one := range want {
		r := records[i]
		if r.Seq != int64(i+1) || r.Action != one.action || r.Object != one.object || r.Livemode != one.live || r.Actor != cli.Actor || r.Source != cli.Source {
			t.Errorf("record %d: %+v", i+1, r)
		}
		for side, c := range map[string]struct {
			got  json.RawMessage
			want string
		}{"before": {r.Before, one.before}, "after": {r.After, one.after}} {
			if (len(c.got) == 0) != (c.want == "") || !strings.Contains(string(c.got), c.want) {
				t.Errorf("record %d %s: %s, want %s", i+1, side, c.got, c.want)
			}
		}
	}
}

func TestAuditFindsTampering(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    []string
		broken string
	}{
		"nothing":            {nil, ""},
		"actor":              {[]string{`update audit_log set actor = 'eve' where tenant_id = $1 and seq = 3`}, "record 3"},
		"what it became":     {[]string{`update audit_log set after = after || '{"name": "x"}' where tenant_id = $1 and seq = 2`}, "record 2"},
		"first removed":      {[]string{`delete from audit_log where tenant_id = $1 and seq = 1`}, "record 1 is missing"},
		"one removed":        {[]string{`delete from audit_log where tenant_id = $1 and seq = 3`}, "record 3 is missing"},
		"last removed":       {[]string{`delete from audit_log where tenant_id = $1 and seq = 5`}, "record 5 is missing"},
		"all removed":        {[]string{`delete from audit_log where tenant_id = $1`}, "record 1 is missing"},
		"closed up":          {[]string{`delete from audit_log where tenant_id = $1 and seq = 3`, `update audit_log set seq = seq - 1 where tenant_id = $1 and seq > 3`}, "record 3"},
		"cut, head set back": {[]string{`delete from audit_log where tenant_id = $1 and seq = 5`, `update audit_heads set seq = 4 where tenant_id = $1`}, "record 4"},
		"slipped in behind":  {[]string{`insert into audit_log select tenant_id, livemode, seq + 2, at, 'eve', action, object, before, after, source, prev_hash, hash from audit_log where tenant_id = $1 and seq = 5`}, "record 7 lies beyond the chain, which ends at 5"},
		"slipped in before":  {[]string{`insert into audit_log select tenant_id, livemode, -3, at, 'eve', action, object, before, after, source, prev_hash, hash from audit_log where tenant_id = $1 and seq = 5`}, "record -3 lies beyond"},
		"head removed":       {[]string{`delete from audit_heads where tenant_id = $1`}, "the head is missing"},
		"other mode":         {[]string{`update audit_log set livemode = not livemode where tenant_id = $1 and seq = 4`}, "record 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tenant, other := w.tenant(t), w.tenant(t)
			for range 4 {
				w.key(t, tenant.ID, "test")
			}
			w.exec(t, `alter table audit_log disable trigger user`)
			for _, sql := range c.sql {
				w.exec(t, sql, tenant.ID)
			}
			if v := w.verify(t, tenant); (c.broken == "") != (v.Broken == "") || !strings.Contains(v.Broken, c.broken) {
				t.Errorf("verdict %+v, want %q", v, c.broken)
			}
			w.holds(t, other, 1)
		})
	}
}

// TestAuditAgainstASavedHead checks that if the log and its head are shortened together or rewritten, only a head saved in another
// place reveals it.
func TestAuditAgainstASavedHead(t *testing.T) {
	t.Parallel()
	cut := []string{`delete from audit_log where tenant_id = $1 and seq = 5`, `update audit_heads set seq = 4, hash = (select hash from audit_log l where l.tenant_id = $1 and l.seq = 4) where tenant_id = $1`}
	for name, c := range map[string]struct {
		sql    []string
		more   bool
		broken string
	}{
		"nothing":            {nil, false, ""},
		"grown":              {nil, true, ""},
		"cut":                {cut, false, "the chain ends at record 4, and record 5 was kept"},
		"cut, and grown":     {cut, true, "record 5 is not the one that was kept"},
		"emptied, head also": {[]string{`delete from audit_log where tenant_id = $1`, `update audit_heads set seq = 0, hash = decode(repeat('00', 32), 'hex') where tenant_id = $1`}, false, "ends at record 0, and record 5 was kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tenant := w.tenant(t)
			for range 4 {
				w.key(t, tenant.ID, "test")
			}
			saved := w.verify(t, tenant)
			if saved.Broken != "" || saved.Head.Seq != 5 || len(saved.Head.Hash) != 64 {
				t.Fatalf("%+v", saved)
			}
			w.exec(t, `alter table audit_log disable trigger user`)
			for _, sql := range c.sql {
				w.exec(t, sql, tenant.ID)
			}
			if c.more {
				w.key(t, tenant.ID, "test")
			}
			if v := w.verify(t, tenant); v.Broken != "" {
				t.Errorf("without the saved head: %+v", v)
			}
			verdicts, err := w.VerifyAudit(t.Context(), []domain.Tenant{tenant}, map[string]domain.PrintedHead{tenant.Slug: saved.Head})
			if err != nil || (c.broken == "") != (verdicts[0].Broken == "") || !strings.Contains(verdicts[0].Broken, c.broken) {
				t.Errorf("%v %+v, want %q", err, verdicts, c.broken)
			}
		})
	}
}

// TestAuditIsAppendOnly checks that not even the owner of the tables can change the log while its trigger exists.
func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenant(t)
	for _, sql := range []string{`update audit_log set actor = 'eve'`, `delete from audit_log`, `truncate audit_log`} {
		_, err := w.owner.Exec(t.Context(), sql)
		if err == nil || !strings.Contains(err.Error(), "append only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestAuditChainUnderParallelWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { w.key(t, tenant.ID, []string{"live", "test"}[i%2]) })
	}
	// A consumer appends without the lock on the tenant's row, so the lock on the head alone must serialize.
	for range 20 {
		wg.Go(func() {
			ctx := caller.With(t.Context(), caller.Service("test", tenant.ID, caller.Live))
			err := w.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
				return store.AppendAudit(ctx, tx, domain.Record{At: time.Now(), Action: "test"})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.holds(t, tenant, 41)
}
