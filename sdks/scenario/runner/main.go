// Command runner runs the scenario with the Go SDK. It reads HOLDFAST_BASE_URL, HOLDFAST_API_KEY and the path of the scenario in its
// argument, and prints a line of JSON after each step.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/scenario"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Getenv("SCENARIO_RUN")); err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(1)
	}
}

// run runs the steps until one fails in a way that the SDK does not report as an error of the API.
func run(ctx context.Context, path, name string) error {
	s, err := scenario.Read(path)
	if err != nil {
		return err
	}
	client, err := holdfast.New()
	if err != nil {
		return err
	}
	r := runner{client: client, values: scenario.Values{"run": name}}
	out := json.NewEncoder(os.Stdout)
	for _, step := range s.Steps {
		start := time.Now()
		result, err := r.step(ctx, step)
		if err != nil {
			return fmt.Errorf("%s: %w", step.Name, err)
		}
		result.Step, result.Seconds = step.Name, time.Since(start).Seconds()
		if err := out.Encode(result); err != nil {
			return err
		}
	}
	return nil
}

// runner runs steps.
type runner struct {
	client *holdfast.Client
	values scenario.Values
}

// step runs a step, and saves values of its object.
func (r runner) step(ctx context.Context, s scenario.Step) (scenario.Result, error) {
	var response holdfast.Response
	options := []holdfast.Option{holdfast.WithResponse(&response)}
	if s.Key != "" {
		options = append(options, holdfast.WithIdempotencyKey(r.values.In(s.Key)))
	}
	if s.AttemptTimeout > 0 {
		options = append(options, holdfast.WithAttemptTimeout(time.Duration(s.AttemptTimeout)*time.Second))
	}
	result, err := r.call(ctx, s, options)
	var failed *holdfast.Error
	if errors.As(err, &failed) {
		return scenario.Result{Code: string(failed.Code), Param: failed.Param}, nil
	}
	if err != nil {
		return result, err
	}
	result.Replayed = response.Replayed
	for name, field := range s.Save {
		r.values[name] = fmt.Sprint(result.Object[field])
	}
	return result, nil
}

// call calls the method of a step.
func (r runner) call(ctx context.Context, s scenario.Step, options []holdfast.Option) (scenario.Result, error) {
	id := r.values.In(s.ID)
	switch s.Call {
	case "customers.create":
		return object(r.client.Customers.Create(ctx, read[holdfast.CustomerCreate](r, s.Body), options...))
	case "units.create":
		return object(r.client.Units.Create(ctx, read[holdfast.UnitCreate](r, s.Body), options...))
	case "bookings.create":
		return object(r.client.Bookings.Create(ctx, read[holdfast.BookingCreate](r, s.Body), options...))
	case "bookings.update":
		return object(r.client.Bookings.Update(ctx, id, read[holdfast.BookingUpdate](r, s.Body), options...))
	case "bookings.cancel":
		return object(r.client.Bookings.Cancel(ctx, id, read[holdfast.BookingCancel](r, s.Body), options...))
	case "bookings.get":
		return object(r.client.Bookings.Get(ctx, id, holdfast.BookingsGetParams{}, options...))
	case "bookings.list":
		q := read[query](r, s.Query)
		params := holdfast.BookingsListParams{UnitID: q.UnitID, Limit: q.Limit}
		return rows(r.client.Bookings.List(ctx, params, options...), s.Take, func(b holdfast.Booking) string { return b.ID })
	case "events.list":
		q := read[query](r, s.Query)
		return rows(r.client.Events.List(ctx, holdfast.EventsListParams{Type: q.Type, Limit: q.Limit}, options...), s.Take, holdfast.Event.EventID)
	case "events.stream":
		params := holdfast.EventsStreamParams{Type: read[query](r, s.Query).Type, LastEventID: r.values.In(s.After)}
		return rows(r.client.Events.Stream(ctx, params, options...), s.Take, bookingOf)
	}
	return scenario.Result{}, fmt.Errorf("the runner has no method %s", s.Call)
}

// query are the parameters of the scenario's lists.
type query struct {
	UnitID string               `json:"unit_id"`
	Type   []holdfast.EventType `json:"type"`
	Limit  int                  `json:"limit"`
}

// bookingOf returns the ID of the booking of an event.
func bookingOf(event holdfast.Event) string {
	if created, ok := event.(*holdfast.BookingCreatedEvent); ok {
		return created.Data.Object.ID
	}
	return ""
}

// read reads the body or the query of a step, whose names are those of the contract.
func read[T any](r runner, document json.RawMessage) T {
	var value T
	if err := json.Unmarshal([]byte(r.values.In(string(document))), &value); err != nil {
		panic(err) // the scenario is part of the checkout
	}
	return value
}

// object returns a result with an object.
func object[T any](value *T, err error) (scenario.Result, error) {
	if err != nil {
		return scenario.Result{}, err
	}
	fields, err := fieldsOf(value)
	return scenario.Result{Object: fields}, err
}

// fieldsOf returns the fields of an object as JSON names them.
func fieldsOf(value any) (map[string]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	err = json.Unmarshal(text, &fields)
	return fields, err
}

// rows returns a result with the IDs of rows and the first of them.
func rows[T any](list iter.Seq2[T, error], take int, id func(T) string) (scenario.Result, error) {
	var result scenario.Result
	for row, err := range list {
		if err != nil {
			return result, err
		}
		if result.Object == nil {
			if result.Object, err = fieldsOf(row); err != nil {
				return result, err
			}
		}
		if result.Rows = append(result.Rows, id(row)); len(result.Rows) == take {
			break
		}
	}
	return result, nil
}
