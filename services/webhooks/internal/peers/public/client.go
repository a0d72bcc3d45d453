// Package public is a client of the platform's public API with an API key. It is for the command line. Services do not call each
// other with it.
package public

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The limits of a request.
const (
	maxResponse  = 8 << 20 // a page has up to 2 MiB, or consists of one larger row
	callTimeout  = 30 * time.Second
	firstByteMax = 30 * time.Second // until the header of a response
)

// Client sends requests with one API key.
type Client struct {
	base, key string
	http      *http.Client
}

// Refusal is a response with a status other than 2xx.
type Refusal struct {
	Status  int
	Message string        // of the error envelope, or a text with the status if there is no envelope
	After   time.Duration // of Retry-After; 0 if there is none
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// New returns a client. base is the URL of the platform, such as https://api.example.com, with or without /api/v1.
func New(base, key string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is not an http or https URL", base)
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport is replaced")
	}
	transport = transport.Clone()
	transport.ResponseHeaderTimeout = firstByteMax
	plain := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a redirect would send the key to another server
	base = strings.TrimRight(base, "/")
	if !strings.HasSuffix(base, "/v1") {
		base += "/api/v1"
	}
	return &Client{base, key, &http.Client{Transport: transport, CheckRedirect: plain}}, nil
}

// Call sends body as JSON, with a new Idempotency-Key, and decodes the response into out. Both can be nil.
func (c *Client) Call(ctx context.Context, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	header := http.Header{}
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		sent = bytes.NewReader(text)
		header.Set("Content-Type", "application/json")
		header.Set("Prefer", "handling=strict") // a misspelled field is an error
	}
	if method != http.MethodGet {
		header.Set("Idempotency-Key", "cli-"+rand.Text())
	}
	res, err := c.send(ctx, method, path, header, sent)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxResponse)).Decode(out); err != nil {
		return fmt.Errorf("%s %s: read the response: %w", method, path, err)
	}
	return nil
}

// send returns a response with a 2xx status. The caller must close its body.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header = header
	req.Header.Set("Authorization", "Bearer "+c.key)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err // The error contains the method and the URL.
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, refusal(method+" "+path, res)
}

// refusal converts a response with another status to a Refusal.
func refusal(what string, res *http.Response) *Refusal {
	r := &Refusal{Status: res.StatusCode}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		r.After = time.Duration(s) * time.Second
	}
	var envelope struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&envelope)
	r.Message = envelope.Error.Message
	if err != nil || r.Message == "" {
		r.Message = fmt.Sprintf("%s returned %s", what, res.Status)
	}
	return r
}
