package main

import (
	"context"
	"crypto/sha256"
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

	"golang.org/x/crypto/argon2"

	"holdfast.dev/libs/apikey"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

var errPage = errors.New("a page is not as it should be")

// browser is a browser of one operator, with its own network.
type browser struct {
	*http.Client

	base, network   string
	email, password string
}

// openBrowser returns a new browser of one of the operators. Each network has its own limit of sign-ins.
func (b *bench) openBrowser(n int) *browser {
	jar, _ := cookiejar.New(nil) // it never returns an error
	return &browser{
		Client: &http.Client{Jar: jar, CheckRedirect: func(
			*http.Request, []*http.Request,
		) error {
			return http.ErrUseLastResponse
		}},
		base: "http://" + b.demo("").addr, network: network(n),
		email: fmt.Sprintf("bench%d@example.com", n%operators), password: b.platform.Env["OPERATOR_PASSWORD"],
	}
}

// network returns the n-th client's address.
func network(n int) string { return fmt.Sprintf("198.18.%d.%d", n>>8&255, n&255) }

// send sends a request and returns the redirect address and the body of the response.
func (p *browser) send(
	ctx context.Context, method, path string, form url.Values, status int,
) (to *url.URL, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, "", err
	}
	req.Header = http.Header{"X-Forwarded-For": {p.network}, "Content-Type": {"application/x-www-form-urlencoded"}}
	res, err := p.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != status {
		err = fmt.Errorf("%w: %s %s returned %d: %.300s", errPage, method, path, res.StatusCode, text)
	}
	to, _ = res.Location() // none on a page
	return to, string(text), err
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)"`)

// submit opens a page and submits its form with more fields. It returns the redirect address.
func (p *browser) submit(ctx context.Context, path string, form url.Values, status int) (*url.URL, error) {
	_, page, err := p.send(ctx, http.MethodGet, path, nil, http.StatusOK)
	if err != nil {
		return nil, err
	}
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	to, _, err := p.send(ctx, http.MethodPost, path, form, status)
	return to, err
}

func (p *browser) signIn(ctx context.Context) error {
	_, err := p.submit(
		ctx, "/oauth/sign-in", url.Values{"email": {p.email}, "password": {p.password}}, http.StatusSeeOther,
	)
	return err
}

// operators is the number of browsers.
const operators = 128

// openBrowsers stores operators, members of the demo tenant, and returns a browser of each.
func (f *figure) openBrowsers() []*browser {
	if f.people != nil {
		return f.people
	}
	id := rowSQL(rowPrefix, "n")
	for _, sql := range []string{
		`insert into operators (id, email, email_lower, name, password_hash, created_at, updated_at)
			select ` + id + `, 'bench' || n || '@example.com', 'bench' || n || '@example.com', 'Bench', o.password_hash,
				now(), now()
			from operators o, generate_series(0, $2 - 1) n where o.email_lower = $1`,
		`insert into memberships (tenant_id, operator_id, role, created_at) select m.tenant_id, ` + id + `, m.role, now()
			from memberships m join operators o on o.id = m.operator_id, generate_series(0, $2 - 1) n where o.email_lower = $1`,
	} {
		f.execute("identity", sql, f.platform.Env["OPERATOR_EMAIL"], operators)
	}
	for n := range operators {
		f.people = append(f.people, f.openBrowser(n))
	}
	return f.people
}

// signIns measures sign-ins with a password compared with only argon2id, and the memory that the service uses for them.
func (f *figure) signIns() {
	f.openBrowsers()
	pid, err := f.platform.PID("identity")
	f.check(err)
	f.check(stack.ResetPeak(pid))
	idle, _, err := stack.Resident(pid)
	f.check(err)
	ours := &side{name: "Sign-ins with a password", do: func(ctx context.Context, _, n int) error {
		fresh := f.openBrowser(n)
		defer fresh.CloseIdleConnections()
		return fresh.signIn(ctx)
	}}
	alone := &side{name: "argon2id", timed: true, pace: load.Pace{Conns: runtime.NumCPU()}}
	alone.do = func(_ context.Context, _, n int) error {
		argon2.IDKey([]byte("a long enough password"), []byte(strconv.Itoa(1<<40+n)), 1, 64<<10, 1, 32)
		return nil
	}
	f.alternate(ours, alone)
	_, peak, err := stack.Resident(pid)
	f.check(err)
	f.addRate(ours.name, ours, "argon2id alone, 64 MiB", alone.Rate(), report.Target{})
	f.addCPU(ours.name, ours, 0)
	f.add(report.Row{
		Figure:   fmt.Sprintf("the service's memory while %d sign in at once", connections),
		Value:    report.Quantity{Value: peak / mebi, Unit: "MiB"},
		Baseline: fmt.Sprintf("before: %.0f MiB", idle/mebi), Target: report.Target{Most: 512},
	})
}

// refreshToken returns the refresh token of the n-th grant.
func refreshToken(n int) string {
	digits := fmt.Sprintf("%026d", n)
	return apikey.Sum("svc_rt_" + digits + digits)
}

// refresh measures POST /oauth/token with a refresh token. Each token is used once.
func (f *figure) refresh() {
	count := f.spare()
	numbers, families, tokens := make([]int, count), make([][]byte, count), make([][]byte, count)
	for n := range count {
		token := refreshToken(n)
		family, whole := sha256.Sum256([]byte(token[:len("svc_rt_")+26])), sha256.Sum256([]byte(token))
		numbers[n], families[n], tokens[n] = n, family[:], whole[:]
	}
	id := rowSQL(rowPrefix, "n")
	f.execute("identity", `
		insert into oauth_grants (tenant_id, livemode, id, app_id, operator_id, scopes, redirect_uri, code_hash,
			code_challenge, code_expires_at, exchanged_at, family_hash, refresh_hash, rotated_at, refresh_expires_at,
			ends_at, created_at)
		select p.tenant_id, false, `+id+`, p.id, m.operator_id, '{read:bookings}', '', sha256((`+id+`)::text::bytea),
			'', now(), now(), family, refresh, now(), now() + interval '30 days', now() + interval '1 year', now()
		from unnest($3::int[], $4::bytea[], $5::bytea[]) created(n, family, refresh),
			oauth_apps p join memberships m on m.tenant_id = p.tenant_id
			join operators o on o.id = m.operator_id and o.email_lower = $1 where $2 = any(p.redirect_uris)`,
		f.platform.Env["OPERATOR_EMAIL"], f.platform.Env["OAUTH_REDIRECT_URI"], numbers, families, tokens)
	ours := &side{name: "`POST /oauth/token` with a refresh token"}
	ours.target = load.Target{Addr: f.demo("").addr, Nth: func(n int) []byte {
		form := url.Values{
			"grant_type": {"refresh_token"}, "client_id": {f.platform.Env["OAUTH_CLIENT_ID"]},
			"refresh_token": {refreshToken(n)},
		}
		return load.Request(
			http.MethodPost, "/oauth/token", []string{"X-Forwarded-For: " + network(n), formType}, form.Encode(),
		)
	}}
	f.alternate(ours)
	f.addRate(ours.name, ours, "budget", 1000, report.Target{LeastRatio: 1})
	f.addCPU(ours.name, ours, 0)
}

const formType = "Content-Type: application/x-www-form-urlencoded"
