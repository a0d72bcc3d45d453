// Package api implements Stripe's HTTP API: keys, parameters, idempotency, errors, expansions, and lists.
package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/faults"
	"holdfast.dev/services/local/stripe/internal/form"
	"holdfast.dev/services/local/stripe/internal/store"
)

// maxBody is the largest body of a request, in bytes.
const maxBody = 1 << 20

// Server implements Stripe's API.
type Server struct {
	App     *app.App
	Keys    *Keyring
	Faults  *faults.Set
	BaseURL string
	// Lifetime of idempotency keys.
	Lifetime time.Duration
	// Stopping is closed when the process ends.
	Stopping <-chan struct{}

	busy inUse
}

// call is a request inside its transaction.
type call struct {
	*app.Unit
	form *form.Values
	id   string // the id in the path
	path string
	key  domain.Key
}

// request is a request before its transaction.
type request struct {
	http  *http.Request
	op    *operation
	id    string // of the request
	key   domain.Key
	form  *form.Values
	token string // idempotency key
	fault faults.Rule
}

// Handler serves /v1.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, op := range operations {
		mux.HandleFunc(op.pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, &op) })
	}
	mux.HandleFunc("OPTIONS /v1/", func(w http.ResponseWriter, _ *http.Request) {
		allowPages(w.Header())
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, nil) })
	return mux
}

// allowPages allows calls from pages of any origin, as Stripe.js makes them.
func allowPages(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, PUT, PATCH, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Stripe-Version")
	h.Set("Access-Control-Expose-Headers", "Request-Id, Stripe-Should-Retry, Idempotent-Replayed")
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, op *operation) {
	q := &request{http: r, op: op, id: "req_" + store.Random(14), token: r.Header.Get("Idempotency-Key")}
	h := w.Header()
	allowPages(h)
	h.Set("Content-Type", "application/json")
	h.Set("Request-Id", q.id)
	h.Set("Stripe-Version", domain.APIVersion)
	if q.token != "" {
		h.Set("Idempotency-Key", q.token)
	}
	if err := s.read(w, q); err != nil {
		q.write(w, q.refusal(err))
		return
	}
	q.fault = s.Faults.Pick(r.Method, r.URL.Path, q.key.Scope.Account)
	half := s.Faults.Latency() / 2
	s.travel(half)
	if q.fault.Action == faults.RateLimit {
		q.write(w, q.refusal(&domain.Error{
			Type: domain.TypeInvalid, Code: "rate_limit", Status: http.StatusTooManyRequests, DocURL: "https://stripe.com/docs/error-codes/rate-limit",
			Message: "Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits.",
		}))
		return
	}
	a := s.execute(q)
	switch {
	case !pause(r, half): // the client disconnected
	case q.fault.Action == faults.HoldAfter:
		<-r.Context().Done()
	case q.fault.Action == faults.CloseAfter:
		hangUp(w)
	default:
		q.write(w, a)
	}
}

// read authenticates and decodes the request.
func (s *Server) read(w http.ResponseWriter, q *request) *domain.Error {
	body, err := readBody(w, q.http)
	if err != nil {
		return err
	}
	if q.key, err = s.Keys.authenticate(w.Header(), q.http, body); err != nil {
		return err
	}
	if q.op == nil {
		unknown := domain.BadParam("", "", "Unrecognized request URL ("+q.http.Method+": "+q.http.URL.Path+"). Please see https://stripe.com/docs or we can help at https://support.stripe.com/.")
		unknown.Status = http.StatusNotFound
		return unknown
	}
	if q.key.Publishable && !q.op.public {
		refused := domain.BadParam("secret_key_required", "", "This API call cannot be made with a publishable API key. Please use a secret API key. You can find a list of your API keys at https://dashboard.stripe.com/account/apikeys.")
		refused.Status = http.StatusForbidden
		return refused
	}
	if v := q.http.Header.Get("Stripe-Version"); v != "" && v != domain.APIVersion {
		return domain.BadParam("", "", "Invalid Stripe API version: "+v+". The stand-in speaks "+domain.APIVersion+" only.")
	}
	if len(q.token) > 255 {
		return domain.BadParam("", "", "Idempotency keys can have up to 255 characters.")
	}
	if q.form, err = form.Parse(q.http.URL.RawQuery, body); err != nil {
		return err
	}
	q.form.Only(append([]string{"expand", "key"}, q.op.params...))
	return q.form.Err()
}

// response is a status and a body.
type response struct {
	store.Response
	replayed string // the request that first got the response
}

// execute runs the operation in its transaction.
func (s *Server) execute(q *request) response {
	var a response
	work := func(tx *store.Tx) error {
		var err error
		a, err = s.once(q, tx)
		return err
	}
	var err error
	switch {
	case !q.op.writes():
		err = s.App.DB.View(work)
	case q.token == "":
		err = s.App.DB.Update(work)
	default:
		name := q.key.Scope.Prefix() + q.token
		if !s.busy.take(name) {
			return q.refusal(&domain.Error{
				Type: domain.TypeIdempotency, Code: "idempotency_key_in_use", Status: http.StatusConflict,
				Message: "There is currently another in-progress request using this Stripe API idempotency key (that probably means you submitted twice, and the other request is still going through): " + q.token + ".",
			})
		}
		defer s.busy.give(name)
		err = s.App.DB.Update(work)
	}
	var refusal *domain.Error
	if errors.As(err, &refusal) { // an expansion that does not exist: the transaction is rolled back
		return q.refusal(refusal)
	}
	if err != nil {
		slog.Error("a request failed", "request", q.id, "error", err)
		return q.refusal(&domain.Error{
			Type: domain.TypeAPI, Status: http.StatusInternalServerError,
			Message: "An unknown error occurred. Please contact us at support@stripe.com.",
		})
	}
	return a
}

// once returns the stored response of the idempotency key, or performs the operation and stores its response.
func (s *Server) once(q *request, tx *store.Tx) (response, error) {
	if q.token == "" || !q.op.writes() {
		a, _, err := s.perform(q, tx)
		return a, err
	}
	stored, err := tx.LoadResponse(q.key.Scope, q.token, s.Lifetime)
	if err != nil {
		return response{}, err
	}
	path := q.http.Method + " " + q.http.URL.Path
	if stored != nil {
		return q.replay(stored, path), nil
	}
	a, save, err := s.perform(q, tx)
	if err != nil || !save {
		return a, err
	}
	a.Path, a.Params, a.Request = path, q.form.Digest(), q.id
	return a, tx.SaveResponse(q.key.Scope, q.token, a.Response)
}

// perform runs the operation. save is false if the operation did not begin to execute.
func (s *Server) perform(q *request, tx *store.Tx) (a response, save bool, err error) {
	if q.fault.Action == faults.Refuse {
		return q.refusal(domain.Invalid(q.fault.Code, "", "The request was refused: "+q.fault.Code+".")), true, nil
	}
	c := &call{form: q.form, id: q.http.PathValue("id"), path: q.http.URL.Path, key: q.key, Unit: &app.Unit{
		App: s.App, Tx: tx, Scope: q.key.Scope, BaseURL: s.BaseURL, Request: domain.EventRequest{ID: &q.id},
	}}
	if q.token != "" {
		c.Request.IdempotencyKey = &q.token
	}
	result, err := q.op.run(c)
	var refusal *domain.Error
	switch {
	case errors.As(err, &refusal):
		a, save = q.refusal(refusal), !refusal.Validation
	case err != nil:
		return a, false, err
	default:
		if a.Body, err = c.render(result); err != nil {
			return a, false, err
		}
		a.Status, save = http.StatusOK, true
	}
	return a, save, nil
}

// refusal returns the response for an error.
func (q *request) refusal(e *domain.Error) response {
	shown := *e
	if pi, ok := shown.PaymentIntent.(*domain.Intent); ok && q.key.Publishable {
		shown.PaymentIntent = pi.Public()
	}
	mode := "/test"
	if q.key.Scope.Live {
		mode = ""
	}
	shown.RequestLogURL = "https://dashboard.stripe.com" + mode + "/logs/" + q.id
	body, _ := json.Marshal(map[string]any{"error": shown}) // our own types
	return response{Response: store.Response{Status: e.Status, Body: body}}
}
