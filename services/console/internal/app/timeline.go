package app

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Line is an entry in the history of a resource.
type Line struct {
	At     time.Time
	Action string   // the type of the event
	Object string   // id of the resource
	Event  string   // its id; "" if the operator cannot read events
	Actor  string   // from the audit log; "" if the record does not exist yet
	Fields []string // changed by it
}

// Timeline returns the newest lines of some resources from their events, if requested, and from the audit log. An event and its
// record in the audit log are one line. Sources that do not respond are omitted.
func (a *App) Timeline(ctx context.Context, ids []string, events bool, most int) ([]Line, error) {
	parts := make([][]Line, 2*len(ids))
	var calls []func() error
	for i, id := range ids {
		if events {
			calls = append(calls, func() (err error) {
				parts[i], err = a.eventsOf(ctx, id, most)
				return err
			})
		}
		calls = append(calls, func() (err error) {
			parts[len(ids)+i], err = a.recordsOf(ctx, id, most)
			return err
		})
	}
	if err := RunConcurrently(calls...); err != nil {
		return nil, err
	}
	var out []Line
	for i := range ids {
		out = append(out, merge(parts[i], parts[len(ids)+i])...)
	}
	slices.SortStableFunc(out, func(x, y Line) int { return y.At.Compare(x.At) })
	return out[:min(len(out), most)], nil
}

// merge adds the actors to events, and appends the records that belong to no event.
func merge(events, records []Line) []Line {
	out := slices.Clone(events)
	for _, r := range records {
		i := slices.IndexFunc(out, func(l Line) bool {
			return l.Actor == "" && l.Action == r.Action && l.At.Truncate(time.Second).Equal(r.At.Truncate(time.Second))
		})
		if i < 0 {
			out = append(out, r)
			continue
		}
		out[i].Actor = r.Actor
	}
	return out
}

func (a *App) eventsOf(ctx context.Context, id string, most int) ([]Line, error) {
	list, err := a.List(ctx, "listEvents", url.Values{"object_id": {id}, "limit": {strconv.Itoa(most)}})
	if Unanswered(err) {
		return nil, nil
	}
	var out []Line
	for _, e := range list.Data {
		if at := e.Time("created_at"); at != nil {
			out = append(out, Line{
				At: *at, Action: e.Text("type"), Object: id, Event: e.Text("id"),
				Fields: slices.Sorted(maps.Keys(e.Object("data").Object("previous_attributes"))),
			})
		}
	}
	return out, err
}

func (a *App) recordsOf(ctx context.Context, id string, most int) ([]Line, error) {
	list, err := a.List(ctx, "listAudit", url.Values{"object": {id}, "limit": {strconv.Itoa(most)}})
	if Unanswered(err) {
		return nil, nil
	}
	var out []Line
	for _, r := range list.Data {
		if at := r.Time("at"); at != nil {
			out = append(out, Line{At: *at, Action: r.Text("action"), Object: id, Actor: r.Text("actor"), Fields: r.Object("after").Texts("fields")})
		}
	}
	return out, err
}
