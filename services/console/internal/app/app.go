// Package app requests the data of the pages from the services: one resource, a list, or the related data of a page.
package app

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/peers"
)

// App holds the dependencies of the use cases. All fields except Pauses are required.
type App struct {
	Services *peers.Services
	Names    *Names
	Now      func() time.Time
	Pauses   []time.Duration // pauses before a write with an unknown outcome is sent again; nil: submitPauses
}

// Get returns a resource. If no call returns a single resource of this kind, it searches the list, which is complete.
func (a *App) Get(ctx context.Context, r *domain.Resource, id string) (domain.Object, error) {
	if r.Whole {
		list, err := a.List(ctx, r.List, nil)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list.Data, func(o domain.Object) bool { return o.Text("id") == id })
		if i < 0 {
			return nil, domain.ErrNotFound
		}
		return list.Data[i], nil
	}
	return a.Do(ctx, domain.Request{Operation: r.Get, Params: []string{id}})
}

// Do makes a call and returns the object of its response; nil if the response has no body.
func (a *App) Do(ctx context.Context, in domain.Request) (domain.Object, error) {
	raw, err := a.Services.Call(ctx, in)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	var o domain.Object
	return o, domain.Decode(raw, &o)
}

// List returns a page of a list.
func (a *App) List(ctx context.Context, operation string, query url.Values, params ...string) (domain.List, error) {
	raw, err := a.Services.Call(ctx, domain.Request{Operation: operation, Query: query, Params: params})
	if err != nil {
		return domain.List{}, err
	}
	var l domain.List
	return l, domain.Decode(raw, &l)
}

// pageSize is the largest page of a list.
const pageSize = 100

// All returns the rows of a list, newest first, at most `most` of them.
func (a *App) All(ctx context.Context, operation string, query url.Values, most int, params ...string) ([]domain.Object, error) {
	var out []domain.Object
	q := url.Values{}
	for name, values := range query {
		q[name] = values
	}
	q.Set("limit", strconv.Itoa(min(pageSize, most)))
	for {
		l, err := a.List(ctx, operation, q, params...)
		if err != nil {
			return nil, err
		}
		out = append(out, l.Data...)
		if !l.HasMore || len(out) >= most {
			return out[:min(len(out), most)], nil
		}
		q.Set("cursor", l.NextCursor)
	}
}

// Unanswered reports whether a service is unavailable, or a payment gateway is not configured.
func Unanswered(err error) bool {
	var e *apperr.Error
	return errors.As(err, &e) && (e.Kind == apperr.Unavailable || e.Kind == apperr.Timeout || e.Code == "gateway_not_configured")
}

// Refused reports whether a service rejected the request as invalid.
func Refused(err error) bool {
	var e *apperr.Error
	return errors.As(err, &e) && (e.Kind == apperr.Invalid || e.Kind == apperr.BadRequest || e.Kind == apperr.NotFound)
}
