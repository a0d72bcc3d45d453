package tools

import (
	"context"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	holdfast "holdfast.dev/sdks/go"
)

// failure is an error for an assistant: what was wrong, where, and what to do.
type failure struct {
	Code      string            `json:"error"`
	Status    int               `json:"status,omitempty"` // of the HTTP response
	Message   string            `json:"message"`
	Fields    map[string]string `json:"fields,omitempty"` // by argument
	Remedy    string            `json:"what_to_do,omitempty"`
	Free      *alternatives     `json:"free_instead,omitempty"`
	RequestID string            `json:"request_id,omitempty"`
}

// Error returns the message.
func (f *failure) Error() string { return f.Message }

// invalid returns the error of an argument.
func invalid(argument, message string) *failure {
	return &failure{Code: "invalid_arguments", Message: "The arguments are not valid. Nothing was changed.", Fields: map[string]string{argument: message}}
}

// failed returns the result of a tool that failed.
func failed(f *failure) *mcp.CallToolResult {
	f.Message = cut(f.Message, longText)
	for name, message := range f.Fields {
		f.Fields[name] = cut(message, longText)
	}
	text, structured, err := render(f)
	if err != nil {
		text, structured = f.Message, nil
	}
	result := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	if structured != nil {
		result.StructuredContent = structured
	}
	return result
}

// remedies are what to do about errors for which an assistant has tools. For other codes, the contract says it.
var remedies = map[holdfast.ErrorCode]string{
	holdfast.ErrSlotUnavailable:         "Offer one of the free slots to the user, or search with find_free_slots. explain_slot gives the reason.",
	holdfast.ErrIdempotencyMismatch:     "The request_key was used for another change with this tool. If this is a new change, use a new request_key.",
	holdfast.ErrIdempotencyInProgress:   "The change is being made. Repeat the call with the same request_key in a few seconds.",
	holdfast.ErrInvalidStatusTransition: "Read the object with get_record, and take a step that its status allows.",
	holdfast.ErrVersionMismatch:         "Someone has changed the object. Read it with get_record, check whether the change still applies, and repeat the call with the new version and a new request_key.",
	holdfast.ErrInsufficientScope:       "Ask the user for a credential with this scope. get_tenant shows the scopes of the present one.",
	holdfast.ErrModeMismatch:            "The object exists in the other mode, which this server cannot access.",
	holdfast.ErrInvalidCursor:           "Repeat the call with next_cursor exactly as received and the same filters, or without cursor.",
	holdfast.ErrInvalidRequest:          "Correct the fields, and repeat the call.",
	holdfast.ErrRateLimited:             "Wait a minute, then repeat the call.",
}

// renamed are the fields of the API that have another name in the tools.
var renamed = map[string]string{
	"event_date": "date", "event_start_time": "start_time", "event_end_time": "end_time", "line_items": "lines", "starts_at": "start_time",
	"q": "query", "from": "date_from", "to": "date_to", "event_date_from": "date_from", "event_date_to": "date_to",
}

// argument returns the argument of a field of the API. The first part of its path is renamed: line_items.0.quantity.
func argument(d definition, field string) string {
	first, rest, nested := strings.Cut(field, ".")
	if name := renamed[first]; d.input.Properties[name] != nil {
		first = name
	}
	if nested {
		return first + "." + rest
	}
	return first
}

// describe returns an error in the form for an assistant.
func (t *toolbox) describe(d definition, err error) *failure {
	var own *failure
	var taken *slotTaken
	var api *holdfast.Error
	var lost *holdfast.ConnectionError
	switch {
	case errors.As(err, &taken):
		f := t.describe(d, taken.error)
		f.Free = taken.free
		return f
	case errors.As(err, &own):
		return own
	case errors.As(err, &api):
		return t.fromAPI(d, api)
	case errors.As(err, &lost), errors.Is(err, context.DeadlineExceeded):
		f := &failure{Code: "no_response", Message: "The platform did not respond in time.", Remedy: "Repeat the call later."}
		if d.effect != reads {
			f.Message += " The change may have been made."
			f.Remedy = "Repeat the call with the same request_key: the change happens once."
		}
		return f
	case errors.Is(err, errTooLarge):
		return &failure{Code: "result_too_large", Message: "The result is too large to show.", Remedy: "Ask for fewer rows or days."}
	}
	return &failure{Code: "failed", Message: err.Error()}
}

// fromAPI returns an error of the API.
func (t *toolbox) fromAPI(d definition, e *holdfast.Error) *failure {
	f := &failure{Code: string(e.Code), Status: e.Status, Message: e.Message, RequestID: e.RequestID, Remedy: remedies[e.Code]}
	if f.Code == "" {
		f.Code, f.Remedy = "no_error_code", "The response is not from the API: check the address of the platform."
	}
	if f.Remedy == "" {
		f.Remedy = t.remedies[f.Code]
	}
	for field, messages := range e.Errors {
		if f.Fields == nil {
			f.Fields = map[string]string{}
		}
		f.Fields[argument(d, field)] = strings.Join(messages, " ")
	}
	return f
}
