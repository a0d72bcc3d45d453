package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/logs/internal/domain"
)

// Filter specifies which requests a list contains. An empty field excludes none.
type Filter struct {
	Status       domain.StatusFilter
	Code         string
	Method       string
	Route        string
	CredentialID string
	ObjectID     string
}

// columns are the columns that scan reads.
const columns = `l.tenant_id, l.livemode, l.id, l.status, l.method, l.route, l.path, l.query_names, l.code, l.param, l.credential_id,
	l.credential_type, l.object_id, l.duration_ms, l.client_network, l.user_agent, l.sdk_version, l.idempotency_key_hash, l.replayed`

// scan reads one row. Names of query parameters are separated by commas, which they do not contain.
func scan(r pgx.CollectableRow) (domain.RequestLog, error) {
	var l domain.RequestLog
	var names string
	err := r.Scan(&l.TenantID, &l.Livemode, &l.ID, &l.Status, &l.Method, &l.Route, &l.Path, &names, &l.Code, &l.Param, &l.CredentialID,
		&l.CredentialType, &l.ObjectID, &l.DurationMS, &l.ClientNetwork, &l.UserAgent, &l.SDKVersion, &l.IdempotencyKeyHash, &l.Replayed)
	l.QueryNames = []string{}
	if names != "" {
		l.QueryNames = strings.Split(names, ",")
	}
	return l, err
}

// RequestLog reads one request that arrived at or after a time, or returns domain.ErrRequestLogNotFound.
func RequestLog(ctx context.Context, q pg.Q, id domain.RequestID, from time.Time) (domain.RequestLog, error) {
	return pg.One(ctx, q, scan, domain.ErrRequestLogNotFound, `
		select `+columns+` from request_logs l
		where l.tenant_id = @tenant and l.livemode = @live and l.id = @id and l.id >= @from`,
		pg.Args{"id": id, "from": ids.First[ids.RequestPrefix](from)})
}

// Reader returns the reader for RequestLogs. A list with a filter is planned for its values: in a day on which a field had only one
// value, a plan for all values would read every request to find those with another.
func (f Filter) Reader(ctx context.Context, db *pg.DB) pg.Q {
	if f == (Filter{}) {
		return db.Read(ctx)
	}
	return db.ReadForValues(ctx)
}

// RequestLogs reads one page of the requests that arrived at or after a time, newest first. q must come from f.Reader.
func RequestLogs(ctx context.Context, q pg.Q, f Filter, r page.Request, from time.Time) (page.Rows[domain.RequestLog], error) {
	w := &page.Where{}
	w.Add(`l.tenant_id = @tenant and l.livemode = @live`)
	w.Add(`l.id >= ?`, ids.First[ids.RequestPrefix](from))
	if r.CreatedAfter != nil {
		w.Add(`l.id >= ?`, ids.First[ids.RequestPrefix](*r.CreatedAfter))
	}
	if r.CreatedBefore != nil {
		w.Add(`l.id < ?`, ids.First[ids.RequestPrefix](*r.CreatedBefore))
	}
	if f.Status.Exact > 0 {
		w.Add(`l.status = ?`, f.Status.Exact)
	}
	if f.Status.Class > 0 {
		w.Add(`l.status_class = ?`, f.Status.Class)
	}
	for _, e := range []struct{ column, value string }{
		{"code", f.Code}, {"method", f.Method}, {"route", f.Route}, {"credential_id", f.CredentialID}, {"object_id", f.ObjectID},
	} {
		if e.value != "" {
			w.Add(`l.`+e.column+` = ?`, e.value)
		}
	}
	tail, args := w.PageByID(r, "l")
	return page.Read(ctx, q, r, scan, `select `+columns+` from request_logs l `+tail, args...)
}
