// Command receiver receives one webhook delivery, which it causes.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

var (
	secret   string
	received = make(chan string, 8)
)

// snippet receive
func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	if err != nil {
		http.Error(w, "unreadable body", http.StatusBadRequest)
		return
	}
	event, err := holdfast.Unwrap(body, r.Header, secret)
	if err != nil {
		http.Error(w, "invalid signature", http.StatusBadRequest)
		return
	}
	if e, ok := event.(*holdfast.CustomerCreatedEvent); ok && e.Data.Object.Email != nil {
		received <- *e.Data.Object.Email // hand it to your own queue, then respond
	}
	w.WriteHeader(http.StatusNoContent)
}

// end

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := holdfast.New()
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	endpoint, err := client.WebhookEndpoints.Create(ctx, holdfast.WebhookEndpointCreate{
		URL: "http://" + listener.Addr().String() + "/hooks", EventTypes: []holdfast.EventTypeWrite{"customer.created"},
	})
	if err != nil {
		log.Fatal(err)
	}
	secret = endpoint.Secret
	server := &http.Server{Handler: http.HandlerFunc(receive), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	if _, err := client.Customers.Create(ctx, holdfast.CustomerCreate{FirstName: "Ada", Email: holdfast.Set("receiver@example.com")}); err != nil {
		log.Fatal(err)
	}
	for email := ""; email != "receiver@example.com"; {
		select {
		case email = <-received:
		case <-ctx.Done():
			log.Fatal("no delivery")
		}
	}
	fmt.Println("receiver@example.com")
	if err := client.WebhookEndpoints.Delete(ctx, endpoint.ID); err != nil {
		log.Fatal(err)
	}
}
