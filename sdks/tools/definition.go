package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	holdfast "holdfast.dev/sdks/go"
)

// The maximum durations, which are below the minute after which clients of MCP give up.
const (
	callTimeout  = 45 * time.Second // of a tool call
	writeTimeout = 30 * time.Second // of its write, with the retries
)

// effect is what a tool does to data.
type effect int

const (
	reads   effect = iota
	adds           // creates something, or takes a step that loses nothing
	changes        // overwrites or ends what exists
)

// definition is a tool.
type definition struct {
	name, description string
	effect            effect
	input             *jsonschema.Schema
	form              form // checks the input
	run               func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// read defines a tool that changes nothing. In describes its arguments.
func read[In any](name, description string, run func(context.Context, In) (any, error)) definition {
	f := formOf[In]()
	return definition{name: name, description: description, input: f.schema, form: f, run: func(ctx context.Context, arguments json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, err
		}
		return run(ctx, in)
	}}
}

// repeatable are the arguments of each tool that changes data.
type repeatable struct {
	RequestKey string `json:"request_key" jsonschema:"Your own unique text for this change. Repeat it only to retry the same call." min:"1" max:"100"`
}

func (r repeatable) requestKey() string { return r.RequestKey }

// write defines a tool that sends one write to the API. The options of the write contain its Idempotency-Key.
func write[In interface{ requestKey() string }](
	e effect, name, description string, run func(context.Context, In, ...holdfast.Option) (any, error),
) definition {
	d := read(name, description, func(ctx context.Context, in In) (any, error) {
		var response holdfast.Response
		object, err := run(ctx, in,
			holdfast.WithIdempotencyKey(idempotencyKey(name, in.requestKey())), holdfast.WithTimeout(writeTimeout), holdfast.WithResponse(&response))
		if err != nil {
			return nil, err
		}
		w := written{Result: object}
		if response.Replayed {
			w.Replayed = "This is the result of an earlier call with the same request_key. Nothing was changed now, and the object can have changed since."
		}
		return w, nil
	})
	d.effect = e
	return d
}

// written is the result of a tool that changes data.
type written struct {
	Replayed string `json:"replayed,omitempty"`
	Result   any    `json:"result"`
}

// idempotencyKey returns the Idempotency-Key of a tool call. It depends only on the tool and on the key of the client, so that a repeated
// call has no second effect, even after a restart. A call of the same tool with the same key and other arguments is an error of the API.
func idempotencyKey(tool, key string) string {
	sum := sha256.Sum256([]byte(key))
	return "mcp-" + tool + "-" + hex.EncodeToString(sum[:])
}

// tool returns the definition in the form of the protocol.
func (d definition) tool() *mcp.Tool {
	closed := false
	hints := &mcp.ToolAnnotations{ReadOnlyHint: d.effect == reads, IdempotentHint: true, OpenWorldHint: &closed}
	if d.effect != reads {
		destroys := d.effect == changes
		hints.DestructiveHint = &destroys
	}
	return &mcp.Tool{Name: d.name, Description: d.description, InputSchema: d.input, Annotations: hints}
}

// handler returns the function that runs the tool.
func (t *toolbox) handler(d definition) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (shown *mcp.CallToolResult, err error) {
		defer func() {
			if p := recover(); p != nil { // a process can serve several assistants
				slog.ErrorContext(ctx, "a tool panicked", slog.String("tool", d.name), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
				shown, err = failed(&failure{Code: "failed", Message: "The tool failed unexpectedly."}), nil
			}
		}()
		select {
		case t.running <- struct{}{}:
			defer func() { <-t.running }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		arguments, problem := d.form.check(request.Params.Arguments)
		if problem != nil {
			return failed(problem), nil
		}
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		result, err := d.run(limited, arguments)
		if err == nil {
			if shown, err = succeeded(result); err == nil {
				return shown, nil
			}
		}
		return failed(t.describe(d, err)), nil
	}
}
