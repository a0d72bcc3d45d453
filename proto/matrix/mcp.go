package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// operations returns the number of operations of a view.
func (j *job) operations() (int, error) {
	text, err := os.ReadFile(j.document)
	if err != nil {
		return 0, fmt.Errorf("view: %w", err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return 0, fmt.Errorf("view: %w", err)
	}
	n := 0
	for _, item := range doc.Paths {
		n += len(item)
	}
	return n, nil
}

// checkCollection checks that a Postman collection has a request for each operation.
func (j *job) checkCollection(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("collection: %w", err)
	}
	type folder struct {
		Item    []json.RawMessage `json:"item"`
		Request json.RawMessage   `json:"request"`
	}
	requests := 0
	var walk func(text json.RawMessage) error
	walk = func(text json.RawMessage) error {
		var f folder
		if err := json.Unmarshal(text, &f); err != nil {
			return fmt.Errorf("collection: %w", err)
		}
		if f.Request != nil {
			requests++
		}
		for _, item := range f.Item {
			if err := walk(item); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(text); err != nil {
		return err
	}
	if want, err := j.operations(); err != nil || requests != want {
		return errors.Join(err, fmt.Errorf("%d requests for %d operations", requests, want))
	}
	return nil
}

// mcpTool is a tool in the list of an MCP server.
type mcpTool struct {
	Name        string `json:"name"`
	InputSchema struct {
		Type  string          `json:"type"`
		OneOf json.RawMessage `json:"oneOf"`
		AnyOf json.RawMessage `json:"anyOf"`
		AllOf json.RawMessage `json:"allOf"`
	} `json:"inputSchema"`
}

// toolName is the form of names that clients of models accept.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// runMCP starts a server that offers the operations as tools, and checks its list as clients do: they reject the whole list for one
// input that is not an object.
func runMCP(ctx context.Context, j *job) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	server := exec.CommandContext(ctx, j.node("openapi-mcp-server"), "--api-base-url", address+"/api/v1", "--openapi-spec", j.document, "--transport", "stdio")
	server.Dir = j.folder
	in, err1 := server.StdinPipe()
	out, err2 := server.StdoutPipe()
	var log strings.Builder
	server.Stderr = &log
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	defer func() { _ = server.Wait() }()
	defer cancel()
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"contract-matrix","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`,
	} {
		if _, err := fmt.Fprintln(in, message); err != nil {
			return fmt.Errorf("mcp: %w\n%s", err, log.String())
		}
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var message struct {
			ID     int `json:"id"`
			Result struct {
				Tools []mcpTool `json:"tools"`
			} `json:"result"`
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(lines.Bytes(), &message) == nil && message.ID == 2 {
			j.lines = len(message.Result.Tools)
			if message.Error != nil {
				return fmt.Errorf("mcp: %s", message.Error)
			}
			return j.checkTools(message.Result.Tools)
		}
	}
	return fmt.Errorf("mcp: the server ended without a list: %w\n%s", lines.Err(), log.String())
}

func (j *job) checkTools(list []mcpTool) error {
	var out []error
	for _, t := range list {
		if s := t.InputSchema; s.Type != "object" || s.OneOf != nil || s.AnyOf != nil || s.AllOf != nil || !toolName.MatchString(t.Name) {
			out = append(out, fmt.Errorf("the input of the tool %q is not one object", t.Name))
		}
	}
	if want, err := j.operations(); err != nil || len(list) != want {
		out = append(out, err, fmt.Errorf("%d tools for %d operations", len(list), want))
	}
	return errors.Join(out...)
}
