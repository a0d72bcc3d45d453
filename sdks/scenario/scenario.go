// Package scenario contains the scenario that the SDKs of all languages run against a platform whose responses are delayed, lost and cut.
// Its test counts afterwards what the platform stored.
package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Scenario is the file scenario.json.
type Scenario struct {
	Steps []Step         `json:"steps"`
	Then  map[string]int `json:"then"` // the number of objects of each resource that must exist afterwards
}

// Step is one call of a method of an SDK.
type Step struct {
	Name           string            `json:"name"`
	Call           string            `json:"call"` // bookings.create
	ID             string            `json:"id"`   // the argument of the path
	Body           json.RawMessage   `json:"body"`
	Query          json.RawMessage   `json:"query"`
	Key            string            `json:"key"`             // an own Idempotency-Key, or "" if the SDK generates it
	After          string            `json:"after"`           // the ID of the event after which a stream starts
	Take           int               `json:"take"`            // the number of rows to read; 0 means all
	AttemptTimeout int               `json:"attempt_timeout"` // seconds, or 0 for the default
	Save           map[string]string `json:"save"`            // the names of values for later steps, each with a field of the object
	Requests       []string          `json:"requests"`        // what happens to each request of the step, as package proxy names it
	Expect         Expectation       `json:"expect"`
}

// Expectation is what the SDK must return.
type Expectation struct {
	Replayed   *bool          `json:"replayed"`
	Object     map[string]any `json:"object"` // some fields of the object
	Code       string         `json:"code"`   // of the error
	Param      string         `json:"param"`  // of the error
	Rows       int            `json:"rows"`   // the number of different rows
	MinSeconds float64        `json:"min_seconds"`
}

// Result is what a runner prints as one line of JSON after each step.
type Result struct {
	Step     string         `json:"step"`
	Object   map[string]any `json:"object,omitempty"` // the object, or the first row
	Rows     []string       `json:"rows,omitempty"`   // the IDs of the rows; of a stream, of the objects of the events
	Replayed bool           `json:"replayed"`
	Code     string         `json:"code,omitempty"`
	Param    string         `json:"param,omitempty"`
	Seconds  float64        `json:"seconds"`
}

// Read reads a scenario.
func Read(path string) (*Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	var s Scenario
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return &s, nil
}

// Values are the values that steps have saved, by name. run is the name of the run.
type Values map[string]string

// In returns a text with the values in place of their {names}.
func (v Values) In(text string) string {
	for name, value := range v {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}
