package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/record"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/sqlbench"
)

// refreshAim is the target for the number of refreshes per second on two cores.
const refreshAim = 1000

// The grants to refresh. The service's have ids with the first prefix, and pgbench's have ids with the second.
const (
	servedGrant = "fe000000-0000-7000-8000-"
	bareGrant   = "ffffffff-0007-7000-8000-"
)

// apps holds the data for the figures of OAuth.
type apps struct {
	db        *pgx.Conn // in the identity database, not subject to row-level security
	app, addr string    // URL of that database with the service's own role, and the service's address
	gateway   string    // address
	key       string    // API key in test mode
	clientID  string
	redirect  string
	email     string // of demo's owner
	password  string // of every operator
	signer    *caller.Signer
	who       caller.Encoded
	transport *http.Transport
}

// oauth measures refreshes compared with the same SQL in pgbench, and requests with an access token compared with requests with an
// API key.
func (b *bench) oauth(ctx context.Context) error {
	a, err := b.openApps(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.db.Close(context.WithoutCancel(ctx)) }()
	defer a.transport.CloseIdleConnections()
	if b.wants("refresh") || b.wants("token") {
		if err := a.grants(ctx, b.spare()); err != nil {
			return fmt.Errorf("making grants: %w", err)
		}
	}
	if b.wants("refresh") {
		b.try(ctx, "refresh", "refresh of tokens", func() error { return b.refresh(ctx, a) })
	}
	if b.wants("token") {
		b.try(ctx, "token", "requests with an access token", func() error { return b.token(ctx, a) })
	}
	if !b.wants("flow") && !b.wants("signin") {
		return nil
	}
	if err := a.operators(ctx); err != nil {
		return err
	}
	if b.wants("signin") {
		b.try(ctx, "signin", "sign-ins", func() error { return b.signIns(ctx, a) })
	}
	if b.wants("flow") {
		b.try(ctx, "flow", "flows of apps", func() error { return b.flows(ctx, a) })
	}
	return nil
}

func (b *bench) openApps(ctx context.Context) (*apps, error) {
	env := b.platform.Env
	settings, err := b.platform.Settings("identity")
	if err != nil {
		return nil, err
	}
	gateway, err := b.platform.Settings("gateway")
	if err != nil {
		return nil, err
	}
	keys, err := caller.ParseKeys(gateway["CALLER_SIGN_KEYS"])
	if err != nil {
		return nil, err
	}
	a := &apps{
		app: settings["DATABASE_URL"], addr: settings["HTTP_ADDR"], gateway: gateway["HTTP_ADDR"], key: env["DEMO_TEST_KEY"],
		clientID: env["OAUTH_CLIENT_ID"], redirect: env["OAUTH_REDIRECT_URI"], email: env["OPERATOR_EMAIL"], password: env["OPERATOR_PASSWORD"],
		transport: &http.Transport{MaxIdleConnsPerHost: connections}, signer: &caller.Signer{From: "gateway", Keys: keys},
	}
	if a.who, err = caller.Encode(caller.Service("gateway", ids.Tenant{}, "")); err != nil {
		return nil, err
	}
	a.db, err = b.platform.Admin(ctx, a.app)
	return a, err
}

// refreshToken returns the refresh token of the n-th grant of the service.
func refreshToken(n int) string {
	digits := fmt.Sprintf("%026d", n)
	return apikey.Sum("svc_rt_" + digits + digits)
}

// grants creates one grant for each refresh of the service and of pgbench, and another one whose refresh is recorded.
func (a *apps) grants(ctx context.Context, n int) error {
	_, err := a.db.Exec(ctx, `create temp table made (n integer, family bytea, refresh bytea)`)
	if err != nil {
		return err
	}
	_, err = a.db.CopyFrom(ctx, pgx.Identifier{"made"}, []string{"n", "family", "refresh"}, pgx.CopyFromSlice(n+1, func(i int) ([]any, error) {
		token := refreshToken(i)
		return []any{i, sum(token[:len("svc_rt_")+26]), sum(token)}, nil
	}))
	if err != nil {
		return err
	}
	for _, side := range []struct{ prefix, family, refresh string }{
		{servedGrant, "family", "refresh"}, {bareGrant, bareHash("f", "n"), bareHash("r", "n")},
	} {
		_, err = a.db.Exec(ctx, `insert into oauth_grants (tenant_id, livemode, id, app_id, operator_id, scopes, redirect_uri, code_hash, code_challenge,
				code_expires_at, exchanged_at, family_hash, refresh_hash, rotated_at, refresh_expires_at, ends_at, created_at)
			select p.tenant_id, false, ('`+side.prefix+`' || lpad(to_hex(n), 12, '0'))::uuid, p.id, m.operator_id, '{read:bookings}', '',
				sha256(('`+side.prefix+`' || n)::bytea), '', now(), now(), `+side.family+`, `+side.refresh+`, now(), now() + interval '30 days',
				now() + interval '1 year', now()
			from made, oauth_apps p join memberships m on m.tenant_id = p.tenant_id join operators o on o.id = m.operator_id and o.email_lower = '`+a.email+`'`)
		if err != nil {
			return err
		}
	}
	_, err = a.db.Exec(ctx, `vacuum analyze oauth_grants`)
	return err
}

// sum returns the SHA-256 of a secret.
func sum(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// bytea returns the SHA-256 of a secret as PostgreSQL logs it.
func bytea(secret string) string { return `\x` + hex.EncodeToString(sum(secret)) }

// bareHash returns the SQL of a hash of pgbench's n-th grant.
func bareHash(of, n string) string { return `sha256(('` + of + `' || ` + n + `)::bytea)` }

// request returns the refresh of the n-th grant, as the gateway sends it.
func (a *apps) request(n int) []byte {
	const path = "/oauth/token"
	signed, err := a.signer.SignEncoded(a.who, caller.Call{Target: "identity", Method: http.MethodPost, Path: path, RequestID: "req_bench"}, time.Now())
	if err != nil {
		return nil // the service refuses it
	}
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {a.clientID}, "refresh_token": {refreshToken(n)}}.Encode()
	return []byte(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\n%s: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		path, caller.Header, signed, len(form), form))
}

func (a *apps) target(first int) load.Target {
	return load.Target{Addr: a.addr, Nth: func(n int) []byte { return a.request(first + n) }, Status: http.StatusOK}
}

// refresh compares POST /oauth/token with the statements that it sends to the database, in pgbench.
func (b *bench) refresh(ctx context.Context, a *apps) error {
	same, err := b.refreshScript(ctx, a)
	if err != nil {
		return err
	}
	ours := &served{name: "POST /oauth/token", target: a.target(1)}
	if _, err := ours.send(ctx, connections, warmUp); err != nil {
		return err
	}
	if err := b.alternate(ctx, b.serve(ctx, ours), same); err != nil {
		return err
	}
	if err := errors.Join(b.enough(ours.name, ours.next), b.enough("pgbench, "+ours.name, same.rows)); err != nil {
		return err
	}
	ratio := report.Ratio(ours.Rate(), same.Rate())
	b.table.Add(report.Row{
		Figure: "`POST /oauth/token` with a refresh token, at the service", Value: report.PerSecond(ours.Rate()),
		Baseline: fmt.Sprintf("pgbench: %.0f/s", same.Rate()), Ratio: ratio, Aim: report.Aim{Text: "≥ 50 %", Value: ratio, Least: 0.5}, Show: "refresh",
	})
	b.table.Add(report.Row{
		Figure: "`POST /oauth/token` with a refresh token, compared with the budget", Value: report.PerSecond(ours.Rate()), Baseline: fmt.Sprintf("budget: %d/s", refreshAim),
		Ratio: ours.Rate() / refreshAim, Aim: report.Aim{Text: "≥ 1", Value: ours.Rate() / refreshAim, Least: 1}, Show: "refresh",
	})
	b.noteCosts(ours, same)
	return nil
}

// refreshScript records one refresh, and creates a script that refreshes pgbench's grants.
func (b *bench) refreshScript(ctx context.Context, a *apps) (*replayed, error) {
	const recorded = 0
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	r := &record.Recording{Service: "identity", Route: "/oauth/token"}
	err := record.All(ctx, b.platform, a.db, func() error {
		body, err := load.Once(ctx, a.target(recorded))
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &tokens)
	}, r)
	if err != nil {
		return nil, err
	}
	old := refreshToken(recorded)
	v := sqlbench.Vary{Values: map[string]string{
		servedGrant + "000000000000":   bareID(bareGrant),
		bytea(old[:len("svc_rt_")+26]): bareHash("f", "(:n)::bigint"),
		bytea(old):                     bareHash("r", "(:n)::bigint"),
		bytea(tokens.Refresh):          bareHash("R", "(:n)::bigint"),
		bytea(tokens.Access):           bareHash("a", "(:n)::bigint"),
	}}
	script, err := b.script("refresh", r, v, beginsRefreshTrip)
	if err != nil {
		return nil, err
	}
	return &replayed{script: script, url: a.app, start: nextGrant(bareGrant, "and rotations > 0")}, nil
}

// nextGrant returns a start of :i for which :n is larger than in every grant of pgbench with the prefix and the condition.
func nextGrant(prefix, condition string) func(ctx context.Context, db *pgx.Conn) (int, error) {
	return func(ctx context.Context, db *pgx.Conn) (next int, err error) {
		err = db.QueryRow(ctx, `select coalesce(max(('x' || right(id::text, 12))::bit(48)::bigint), 0) / $1 + 1
			from oauth_grants where id between $2 and $3 `+condition, sqlbench.Clients, prefix+"000000000000", prefix+"ffffffffffff").Scan(&next)
		return next, err
	}
}

// beginsRefreshTrip is beginsTrip for the statements that identity sends for a refresh.
func beginsRefreshTrip(before, s sqlbench.Statement) bool {
	sql, prior := strings.TrimSpace(s.SQL), strings.TrimSpace(before.SQL)
	switch {
	case strings.HasPrefix(sql, "select set_config"):
		return prior != "begin"
	case strings.HasPrefix(sql, "select"):
		return !strings.HasPrefix(prior, "select set_config")
	default:
		return sql == "begin" || strings.HasPrefix(sql, "with moved")
	}
}

// token compares requests with an access token with the same requests with an API key, through the gateway.
func (b *bench) token(ctx context.Context, a *apps) error {
	body, err := load.Once(ctx, a.target(b.spare()))
	if err != nil {
		return err
	}
	var tokens struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &tokens); err != nil {
		return err
	}
	side := func(name, credential string) *served {
		request := load.Request(http.MethodGet, "/api/v1/tenant", []string{"Authorization: Bearer " + credential}, "")
		return &served{name: name, target: load.Target{Addr: a.gateway, Nth: func(int) []byte { return request }, Status: http.StatusOK}}
	}
	key, token := side("GET /tenant with an API key", a.key), side("GET /tenant with an access token", tokens.Access)
	if err := runRounds(b.serve(ctx, key), b.serve(ctx, token)); err != nil {
		return err
	}
	ratio := report.Ratio(token.Rate(), key.Rate())
	b.table.Add(report.Row{
		Figure: "`GET /tenant` with an access token, through the gateway", Value: report.PerSecond(token.Rate()),
		Baseline: fmt.Sprintf("with an API key: %.0f/s", key.Rate()), Ratio: ratio, Aim: report.Aim{Text: "≥ 95 %", Value: ratio, Least: 0.95}, Show: "token",
	})
	for _, s := range []*served{key, token} {
		b.table.Note("%s, CPU µs per request: %s", s.name, s.used.per(float64(s.Requests)))
	}
	return nil
}
