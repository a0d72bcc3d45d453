package api

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
)

// A form has an Idempotency-Key: the field once, which is in the address of its page too, so that Back and reload show the form with its
// key. It stays until a definite refusal; then the form gets the next one: KEY, KEY-2, KEY-3.

const onceDigits = 20 // that are random

var (
	onceForm = regexp.MustCompile(`^[0-9A-Za-z-]{16,120}$`)
	onceTurn = regexp.MustCompile(`-([0-9]{1,4})$`)
)

// newOnce makes a key for an operator.
func newOnce(operator string) string {
	random := apikey.Random(onceDigits)
	return random + onceCheck(operator, random)
}

// onceCheck binds a key in an address to an operator: a link that somebody sends has another one's key, and gets a new one.
func onceCheck(operator, random string) string {
	sum := sha256.Sum256([]byte("once\x00" + operator + "\x00" + random))
	return hex.EncodeToString(sum[:6])
}

// ownOnce reports whether a key, with or without turns and a version behind it, is one of an operator.
func ownOnce(operator, key string) bool {
	own, _, _ := strings.Cut(key, "-")
	return len(own) > onceDigits && own[onceDigits:] == onceCheck(operator, own[:onceDigits]) && onceForm.MatchString(key)
}

// nextOnce is the key of a form after a definite refusal of the one before.
func nextOnce(key string) string {
	turn := 2
	if found := onceTurn.FindStringSubmatch(key); found != nil {
		n, _ := strconv.Atoi(found[1])
		key, turn = strings.TrimSuffix(key, found[0]), n+1
	}
	return key + "-" + strconv.Itoa(turn)
}

// withOnce shows a page with forms under an address that has their key.
func withOnce(h page) page {
	return func(v *visit) error {
		q := v.r.URL.Query()
		if v.once = q.Get("once"); !ownOnce(v.session.Operator.ID, v.once) {
			q.Del("draft")
			q.Set("once", newOnce(v.session.Operator.ID))
			return v.redirect(v.r.URL.EscapedPath() + "?" + q.Encode())
		}
		return h(v)
	}
}

// query is what the address of a page says besides the key of its forms and what has been kept of them.
func (v *visit) query() url.Values {
	q := v.r.URL.Query()
	q.Del("once")
	q.Del("draft")
	return q
}

// keep has identity keep what was entered into the form that was sent, for the operator whose page it was on. It returns the address of the page
// that then has the form, and whether it is kept: a form needs a proof of whose page it was on, and a key.
func (v *visit) keep() (to string, kept bool) {
	path, query := v.formPage()
	proof, _, proven := strings.Cut(v.form.Get("form"), ".")
	if key := v.form.Get("once"); proven && proof != "" && onceForm.MatchString(key) && path != "" {
		err := v.app.Services.SaveDraft(v.r.Context(), httpx.RequestID(v.c), key, proof, domain.Draft{Page: path, Values: domain.Keepable(v.form)})
		switch {
		case err == nil:
			kept = true
			query.Set("once", key)
			query.Set("draft", "1")
		case apperr.As(err).Kind == apperr.TooLarge:
			query.Set("done", "not_kept")
		default: // without what was entered the operator comes to an empty form
			obs.Add(v.r.Context(), slog.String("draft", err.Error()))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, kept
}

// formPage is the page that has the form that was sent, and its query.
func (v *visit) formPage() (path string, query url.Values) {
	path, raw, _ := strings.Cut(v.address(), "?")
	query, _ = url.ParseQuery(raw)
	query.Del("draft")
	switch strings.TrimPrefix(v.c.FullPath(), workspaces) {
	case "/views", "/views/:id/delete": // on the page of the list
		if r := domain.ResourceNamed(v.form.Get("list")); r != nil {
			query, _ = url.ParseQuery(v.form.Get("query"))
			return path + "/" + r.Name, query
		}
	case "/bookings/:id/move": // in the calendar, without anything entered
		if to := httpx.Local(v.form.Get("to"), "/admin"); to != "" {
			return to, url.Values{}
		}
	}
	return path, query
}

// restore fills the form of a page with what its operator has entered before they had to sign in again. What belongs to somebody else, or to
// another page, is not shown.
func (v *visit) restore() {
	key := v.r.URL.Query().Get("once")
	if v.r.Method != http.MethodGet || !v.r.URL.Query().Has("draft") || !ownOnce(v.session.Operator.ID, key) {
		return
	}
	d, err := v.app.Services.Draft(v.r.Context(), httpx.RequestID(v.c), key, v.session.Operator.ID)
	if err != nil {
		obs.Add(v.r.Context(), slog.String("draft", err.Error()))
		return
	}
	if d.Page != v.r.URL.EscapedPath() {
		return
	}
	v.once, v.draft, v.Text = key, d.Values, v.s.Words.For(d.Values.Get("lang"), v.Lang)
	v.notice = v.T("draft_kept")
}

// sentOnce is the key of the form that was sent.
func (v *visit) sentOnce() string {
	if key := v.form.Get("once"); onceForm.MatchString(key) {
		return key
	}
	return newOnce(v.session.Operator.ID)
}

// submit makes the call of a form with its key. After a definite refusal the form has the next key.
func (v *visit) submit(in domain.Request) (domain.Object, error) {
	in.Key = cmp.Or(in.Key, v.once)
	o, err := v.app.Submit(v.r.Context(), in)
	if err != nil && !app.Unknown(err) && in.Key == v.once && apperr.As(err).Kind != apperr.Forbidden {
		v.once = nextOnce(v.once)
	}
	return o, err
}

// verdict says what the error of a submitted form means, for the top of the form.
func (v *visit) verdict(err error) string {
	e := apperr.As(err)
	switch {
	case app.Unknown(err) && (e.Kind == apperr.BadGateway || e.Kind == apperr.RateLimited):
		return v.explain(e) + " " + v.T("outcome_unknown")
	case app.Unknown(err):
		return v.T("outcome_unknown")
	case e.Code == apperr.ErrMismatch.Code:
		return v.T("form_used")
	case len(e.Fields) == 0:
		return v.explain(e)
	}
	return ""
}

// again shows the page of a form that has nothing to fill in, with what became of it. The page is the one of its GET.
func (v *visit) again(err error, show page) error {
	var e *apperr.Error
	if !app.Unknown(err) && (!errors.As(err, &e) || e.Kind == apperr.Forbidden) {
		return err
	}
	v.problem = strings.TrimSpace(v.verdict(err) + " " + strings.Join(v.summary(v.faults(err)), " "))
	v.status = httpx.StatusOf(apperr.As(err).Kind)
	if show(v) != nil {
		return err
	}
	return nil
}

// onceFor is the key of a form that can be sent more than once from the same page: one for each content.
func (v *visit) onceFor(content string) string {
	sum := sha256.Sum256([]byte(content))
	return v.once + "-" + hex.EncodeToString(sum[:6])
}
