package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/peers/public"
)

// responseTimeout is the time limit for a receiver's response, the same as for a delivery.
const responseTimeout = 10 * time.Second

var errLate = fmt.Errorf("no response within %v", responseTimeout)

// receiver is the developer's own receiver, which receives events in the form of deliveries. It can have any address.
type receiver struct {
	url, secret string
	http        *http.Client
}

func newReceiver(target, secret string) *receiver {
	return &receiver{target, secret, &http.Client{
		Timeout:       responseTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// deliver makes one attempt, with the number 1.
func (r *receiver) deliver(ctx context.Context, e public.Event) (status int, took time.Duration, err error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(e.Body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("User-Agent", "Holdfast-Webhooks/1 (listen)")
	for name, value := range domain.Headers(e.ID, e.Type, ids.New[domain.DeliveryPrefix]().String(), 1, e.Body, began, r.secret) {
		req.Header.Set(name, value)
	}
	res, err := r.http.Do(req)
	took = time.Since(began)
	if err != nil {
		return 0, took, withoutURL(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be reused
	return res.StatusCode, took, nil
}

// withoutURL returns the error without its method and URL.
func withoutURL(err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}
	if u.Timeout() {
		return errLate
	}
	return u.Err
}
