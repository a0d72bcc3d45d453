package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"holdfast.dev/libs/caller"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/record"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/sqlbench"
	"holdfast.dev/loadtest/internal/stack"
)

// The operators who sign in and consent. The service's have ids with the first prefix, and pgbench's have ids with the second.
const (
	servedOperator = "fe000000-0008-7000-8000-"
	bareOperator   = "ffffffff-0008-7000-8000-"

	perConnection = 8 // alternating operators of each connection: an operator's 51st grant for an app would end the first one
	operators     = perConnection * connections
)

// passwordMemory is the memory for hashing one password, in KiB.
const passwordMemory = 64 << 10

var errPage = errors.New("a page is not as it should be")

// person is a browser of one operator.
type person struct {
	*apps

	client  *http.Client
	email   string
	network string // source address
}

// operator creates a new browser for the n-th operator.
func (a *apps) operator(n int) *person {
	jar, _ := cookiejar.New(nil) // it never returns an error
	return &person{
		apps: a, email: fmt.Sprintf("bench%d@example.com", n%operators), network: fmt.Sprintf("198.18.%d.%d", n>>8&255, n&255),
		client: &http.Client{Jar: jar, Transport: a.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// send sends a request as the gateway sends it, and returns the redirect address and the body of the response.
func (p *person) send(ctx context.Context, method, path, query string, form url.Values, status int) (to *url.URL, body string, err error) {
	signed, err := p.signer.SignEncoded(p.who, caller.Call{Target: "identity", Method: method, Path: path, RequestID: "req_bench"}, time.Now())
	if err != nil {
		return nil, "", err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.addr+path+"?"+query, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set(caller.Header, signed)
	req.Header.Set("X-Forwarded-For", p.network)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := p.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != status {
		err = fmt.Errorf("%w: %s %s returned %d: %.300s", errPage, method, path, res.StatusCode, text)
	}
	if err != nil {
		return nil, "", err
	}
	to, _ = res.Location() // none on a page
	return to, string(text), nil
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)"`)

// fill adds the hidden fields of a page's form.
func fill(page string, form url.Values) url.Values {
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// signIn opens the form and submits the address and the password.
func (p *person) signIn(ctx context.Context) error {
	_, page, err := p.send(ctx, http.MethodGet, "/oauth/sign-in", "", nil, http.StatusOK)
	if err != nil {
		return err
	}
	_, _, err = p.send(ctx, http.MethodPost, "/oauth/sign-in", "", fill(page, url.Values{"email": {p.email}, "password": {p.password}}), http.StatusSeeOther)
	return err
}

// The verifier of each flow, and its challenge.
const (
	flowVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	flowChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func (p *person) flowQuery() string {
	return url.Values{
		"response_type": {"code"}, "client_id": {p.clientID}, "redirect_uri": {p.redirect}, "scope": {"read:bookings write:bookings"}, "state": {"bench"},
		"code_challenge": {flowChallenge}, "code_challenge_method": {"S256"},
	}.Encode()
}

// openConsent opens the consent page.
func (p *person) openConsent(ctx context.Context) (page string, err error) {
	_, page, err = p.send(ctx, http.MethodGet, "/oauth/authorize", p.flowQuery(), nil, http.StatusOK)
	return page, err
}

// allow submits the consent page's form and returns the code that the app gets.
func (p *person) allow(ctx context.Context, page string) (code string, err error) {
	form := fill(page, url.Values{"mode": {"test"}, "decision": {"allow"}})
	to, _, err := p.send(ctx, http.MethodPost, "/oauth/authorize", p.flowQuery(), form, http.StatusSeeOther)
	if err != nil {
		return "", err
	}
	if code = to.Query().Get("code"); code == "" {
		return "", fmt.Errorf("%w: %s", errPage, to)
	}
	return code, nil
}

// exchange exchanges the code, as the app does.
func (p *person) exchange(ctx context.Context, code string) (body string, err error) {
	_, body, err = p.send(ctx, http.MethodPost, "/oauth/token", "", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {p.clientID}, "code": {code}, "code_verifier": {flowVerifier},
	}, http.StatusOK)
	return body, err
}

// flow runs the flow from the authorization request to the tokens.
func (p *person) flow(ctx context.Context) error {
	page, err := p.openConsent(ctx)
	if err != nil {
		return err
	}
	code, err := p.allow(ctx, page)
	if err != nil {
		return err
	}
	_, err = p.exchange(ctx, code)
	return err
}

// operators creates operators, members of demo, for the service and for pgbench. The latter also have sessions.
func (a *apps) operators(ctx context.Context) error {
	var sql []string
	for prefix, name := range map[string]string{servedOperator: "bench", bareOperator: "bare"} {
		id := `('` + prefix + `' || lpad(to_hex(n), 12, '0'))::uuid`
		sql = append(sql, `insert into operators (id, email, email_lower, name, password_hash, created_at, updated_at)
				select `+id+`, '`+name+`' || n || '@example.com', '`+name+`' || n || '@example.com', 'Bench', o.password_hash, now(), now()
				from operators o, generate_series(0, $2 - 1) n where o.email_lower = $1`,
			`insert into memberships (tenant_id, operator_id, role, created_at) select m.tenant_id, `+id+`, m.role, now()
				from memberships m join operators o on o.id = m.operator_id, generate_series(0, $2 - 1) n where o.email_lower = $1`)
	}
	sql = append(sql, `insert into operator_sessions (hash, id, operator_id, data, created_at, seen_at, expires_at)
		select `+bareHash("s", "n")+`, gen_random_uuid(), ('`+bareOperator+`' || lpad(to_hex(n), 12, '0'))::uuid, '', now(), now(), now() + interval '7 days'
		from operators o, generate_series(0, $2 - 1) n where o.email_lower = $1`)
	for _, one := range sql {
		if _, err := a.db.Exec(ctx, one, a.email, operators); err != nil {
			return fmt.Errorf("making operators: %w", err)
		}
	}
	_, err := a.db.Exec(ctx, `vacuum analyze operators, memberships, operator_sessions`)
	return err
}

// flows compares complete flows of signed-in operators with the SQL of one, in pgbench.
func (b *bench) flows(ctx context.Context, a *apps) error {
	people := make([]*person, operators)
	for i := range people {
		people[i] = a.operator(i)
		if err := people[i].signIn(ctx); err != nil {
			return err
		}
	}
	same, err := b.flowScript(ctx, a, people[0])
	if err != nil {
		return err
	}
	ours := &served{name: "flow"}
	serve := func(d time.Duration) (load.Sample, error) {
		first := ours.next
		sample, err := load.Each(ctx, connections, d, func(ctx context.Context, conn, n int) error {
			return people[conn*perConnection+(first+n)/connections%perConnection].flow(ctx)
		})
		ours.next += sample.Requests
		return sample, err
	}
	err = b.alternate(ctx, func(int) error {
		if _, err := serve(warmUp); err != nil {
			return err
		}
		return b.account(ctx, &ours.used, func() error {
			sample, err := serve(b.slice())
			ours.Sample = load.Join(ours.Sample, sample)
			b.say("flows: %.0f/s, p50 %s", sample.Rate(), report.Millis(sample.Percentile(50)))
			return err
		})
	}, same)
	if err != nil {
		return err
	}
	ratio := report.Ratio(ours.Rate(), same.Rate())
	b.table.Add(report.Row{
		Figure: "Consent page, consent and exchange of the code, at the service", Value: report.PerSecond(ours.Rate()),
		Baseline: fmt.Sprintf("pgbench: %.0f/s", same.Rate()), Ratio: ratio, Aim: report.Aim{Text: "≥ 50 %", Value: ratio, Least: 0.5}, Show: "flow",
	})
	b.noteCosts(ours, same)
	return nil
}

// flowScript records one flow, request by request, and creates a script that does the same for pgbench's operators.
func (b *bench) flowScript(ctx context.Context, a *apps, p *person) (*replayed, error) {
	var page, code, response string
	if _, err := p.openConsent(ctx); err != nil { // now and then, the first page also records that the session is in use
		return nil, err
	}
	whole := &record.Recording{Service: "identity"}
	for _, step := range []struct {
		route string
		do    func() error
	}{
		{"/oauth/authorize", func() (err error) { page, err = p.openConsent(ctx); return err }},
		{"/oauth/authorize", func() (err error) { code, err = p.allow(ctx, page); return err }},
		{"/oauth/token", func() (err error) { response, err = p.exchange(ctx, code); return err }},
	} {
		r := &record.Recording{Service: "identity", Route: step.route}
		if err := record.All(ctx, b.platform, a.db, step.do, r); err != nil {
			return nil, err
		}
		whole.Statements, whole.Trips = append(whole.Statements, r.Statements...), whole.Trips+r.Trips
	}
	v, err := a.varyFlow(ctx, code, response)
	if err != nil {
		return nil, err
	}
	script, err := b.script("flow", whole, v, beginsFlowTrip)
	return &replayed{script: script, url: a.app, start: nextGrant(flowGrant, "")}, err
}

// flowGrant is the prefix of the ids of the grants that pgbench's flows create.
const flowGrant = "ffffffff-0009-7000-8000-"

// varyFlow returns the differences between two flows: the operator with their session, the grant, its code and tokens, and the
// number of its record in the audit log.
func (a *apps) varyFlow(ctx context.Context, code, response string) (v sqlbench.Vary, err error) {
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	if err := json.Unmarshal([]byte(response), &tokens); err != nil {
		return v, err
	}
	var grant, tenant, session string
	err = a.db.QueryRow(ctx, `select g.id::text, g.tenant_id::text, s.hash::text from oauth_grants g join operator_sessions s on s.operator_id = g.operator_id
		where g.code_hash = $1 order by s.seen_at desc limit 1`, sum(code)).Scan(&grant, &tenant, &session)
	if err != nil {
		return v, err
	}
	next := `(select seq + 1 from audit_heads where tenant_id = '` + tenant + `')`
	return sqlbench.Vary{
		Setup: []string{fmt.Sprintf("\\set o :n %% %d", operators)},
		Values: map[string]string{
			servedOperator + "000000000000": `('` + bareOperator + `' || lpad(to_hex((:o)::bigint), 12, '0'))::uuid`,
			session:                         bareHash("s", "(:o)::bigint"),
			grant:                           bareID(flowGrant),
			bytea(code):                     bareHash("c", "(:n)::bigint"),
			bytea(tokens.Access):            bareHash("A", "(:n)::bigint"),
			bytea(tokens.Refresh):           bareHash("G", "(:n)::bigint"),
			bytea(tokens.Refresh[:len("svc_rt_")+26]): bareHash("F", "(:n)::bigint"),
		},
		Special: func(st sqlbench.Statement, i int) string {
			if strings.HasPrefix(st.SQL, "insert into audit_log") && i == 3 || strings.HasPrefix(st.SQL, "update audit_heads") && i == 1 {
				return next
			}
			return ""
		},
	}, nil
}

// beginsFlowTrip is beginsTrip for the statements that identity sends for a flow.
func beginsFlowTrip(before, s sqlbench.Statement) bool {
	sql, prior := strings.TrimSpace(s.SQL), strings.TrimSpace(before.SQL)
	switch {
	case strings.HasPrefix(sql, "select set_config"):
		return prior != "begin"
	case strings.HasPrefix(prior, "select set_config") && strings.HasPrefix(sql, "select"):
		return strings.Contains(sql, "where tenant_id") // a read outside a transaction is sent with its settings
	default:
		return sql != "commit" && !strings.HasPrefix(sql, "update audit_heads") // sent with the record
	}
}

// signIns measures sign-ins with a password compared with only argon2id, and the memory that the service uses for them.
func (b *bench) signIns(ctx context.Context, a *apps) error {
	pid, err := b.platform.PID("identity")
	if err != nil {
		return err
	}
	if err := stack.ResetPeak(pid); err != nil {
		return err
	}
	idle, _, err := stack.Resident(pid)
	if err != nil {
		return err
	}
	for i := range connections { // also creates the hash with which unknown accounts are compared
		if err := a.operator(i).signIn(ctx); err != nil {
			return err
		}
	}
	var ours, alone load.Sample
	from := 0
	err = runRounds(func(int) error {
		sample, err := load.Each(ctx, connections, b.slice(), func(ctx context.Context, _, n int) error { return a.operator(from + n).signIn(ctx) })
		ours, from = load.Join(ours, sample), from+sample.Requests+connections
		b.say("sign-ins: %.0f/s, p50 %s", sample.Rate(), report.Millis(sample.Percentile(50)))
		return err
	}, func(int) error {
		sample, err := load.Each(ctx, runtime.NumCPU(), b.slice(), func(_ context.Context, _, n int) error {
			argon2.IDKey([]byte(a.password), []byte(strconv.Itoa(1<<40+n)), 1, passwordMemory, 1, 32)
			return nil
		})
		alone = load.Join(alone, sample)
		return err
	})
	if err != nil {
		return err
	}
	_, peak, err := stack.Resident(pid)
	if err != nil {
		return err
	}
	b.table.Add(report.Row{
		Figure: "Sign-ins with a password, at the service", Value: report.PerSecond(ours.Rate()), Ours: fmt.Sprintf("%.1f/s", ours.Rate()),
		Baseline: fmt.Sprintf("argon2id alone, 64 MiB: %.1f/s", alone.Rate()), Ratio: report.Ratio(ours.Rate(), alone.Rate()), Show: "signin",
	})
	const mega = 1 << 20
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("the service's memory while %d sign in at once", connections), Value: report.Quantity{Value: float64(peak) / mega, Unit: "MiB"},
		Baseline: fmt.Sprintf("before: %.0f MiB", float64(idle)/mega), Aim: report.Aim{Text: "< 512 MiB", Value: float64(peak) / mega, AtMost: 512}, Show: "signin",
	})
	return nil
}
