package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto/yamlnode"
)

// example is a request that a test sent, and its response: the content of examples/<operationId>.json.
type example struct {
	Request struct {
		Path    string            `json:"path"`    // with its query
		Headers map[string]string `json:"headers"` // without Authorization and Content-Type
		Body    json.RawMessage   `json:"body"`
	} `json:"request"`
	Response struct {
		Status int             `json:"status"`
		Body   json.RawMessage `json:"body"` // a string if the response is not JSON
	} `json:"response"`
	CSV string `json:"-"` // the same response as CSV, the content of examples/<operationId>.csv
}

func readExamples(files fs.FS) (map[string]example, error) {
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}
	out := map[string]example{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("examples: %w", err)
		}
		var e example
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("examples/%s: %w", name, err)
		}
		id := strings.TrimSuffix(name, ".json")
		csv, err := fs.ReadFile(files, id+".csv")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("examples: %w", err)
		}
		e.CSV = string(csv)
		out[id] = e
	}
	return out, nil
}

// addExample adds the bodies of an example to their schemas, and the request as a curl command.
func (op operation) addExample(e example, response *yaml.Node) error {
	for _, part := range []struct {
		of   *yaml.Node
		body json.RawMessage
	}{{yamlnode.Get(op.node, "requestBody"), e.Request.Body}, {response, e.Response.Body}} {
		if len(part.body) == 0 {
			continue
		}
		body, err := yamlnode.Value(part.body)
		if err != nil {
			return err
		}
		for kind, media := range yamlnode.Pairs(yamlnode.Get(part.of, "content")) {
			if kind != csvType {
				yamlnode.Set(media, "example", body)
			} else if e.CSV != "" {
				yamlnode.Set(media, "example", yamlnode.Scalar(e.CSV))
			}
		}
	}
	source, err := op.curl(e)
	if err != nil {
		return err
	}
	sample := yamlnode.Mapping()
	yamlnode.Set(sample, "lang", yamlnode.Scalar("Shell"))
	yamlnode.Set(sample, "label", yamlnode.Scalar("curl"))
	yamlnode.Set(sample, "source", yamlnode.Scalar(source))
	yamlnode.Set(op.node, "x-codeSamples", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{sample}})
	return nil
}

// curl returns the command that sends the request.
func (op operation) curl(e example) (string, error) {
	lines := []string{`curl "$BASE_URL` + e.Request.Path + `"`}
	if op.method != "GET" {
		lines[0] = `curl -X ` + op.method + ` "$BASE_URL` + e.Request.Path + `"`
	}
	if !op.public() {
		lines = append(lines, `-H "Authorization: Bearer $API_KEY"`)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Request.Headers)) {
		lines = append(lines, fmt.Sprintf(`-H '%s: %s'`, name, e.Request.Headers[name]))
	}
	if len(e.Request.Body) > 0 {
		var body bytes.Buffer
		if err := json.Indent(&body, e.Request.Body, "", "  "); err != nil {
			return "", fmt.Errorf("example: %w", err)
		}
		lines = append(lines, `-H 'Content-Type: application/json'`, `-d '`+strings.ReplaceAll(body.String(), "'", `'\''`)+`'`)
	}
	return strings.Join(lines, " \\\n  "), nil
}
