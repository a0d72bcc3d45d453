// Command receiver receives webhooks and keeps a copy of the operator's bookings in a SQLite database. Its README explains the steps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// maxBody is the largest body that is read, in bytes. Events are smaller.
const maxBody = 4 << 20

func main() {
	database := flag.String("database", "receiver.db", "file of the database")
	address := flag.String("address", "127.0.0.1:3000", "address to listen on")
	list := flag.Bool("list", false, "print the bookings and exit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *database, *address, *list); err != nil {
		log.Fatal("receiver: ", err)
	}
}

func run(ctx context.Context, database, address string, list bool) error {
	s, err := open(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = s.db.Close() }()
	if list {
		return s.list(ctx, os.Stdout)
	}
	r := receiver{secret: os.Getenv("HOLDFAST_WEBHOOK_SECRET"), store: s, stored: make(chan struct{}, 1)}
	if r.secret == "" {
		return errors.New("HOLDFAST_WEBHOOK_SECRET must be set to the secret of the webhook endpoint, whsec_…")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks", r.receive)
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	worked := make(chan struct{})
	go func() { defer close(worked); r.work(ctx) }()
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.WithoutCancel(ctx)) // bounded by the timeouts of the server
	}()
	log.Printf("waiting on http://%s/hooks", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-worked
	return nil
}

// receiver receives deliveries.
type receiver struct {
	secret string // of the webhook endpoint
	store  *store
	stored chan struct{} // wakes the worker
}

// receive verifies a delivery, stores its event, and responds. The event is processed afterwards, so that the response does not wait.
func (r *receiver) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("The body has more than %d bytes.", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		return // the connection is broken
	}
	event, err := holdfast.Unwrap(body, req.Header, r.secret)
	if err != nil {
		log.Printf("rejected: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	added, err := r.store.add(req.Context(), event.EventID(), body)
	if err != nil { // the platform delivers the event again
		log.Printf("%s: %v", event.EventID(), err) //nolint:gosec // the platform has signed it
		http.Error(w, "The event cannot be stored now.", http.StatusServiceUnavailable)
		return
	}
	if !added {
		log.Printf("%s is a duplicate", event.EventID()) //nolint:gosec // the same
	}
	w.WriteHeader(http.StatusNoContent)
	select {
	case r.stored <- struct{}{}:
	default: // the worker has not seen the previous signal, and will find this event too
	}
}

// work processes the stored events, also those of an earlier run, until ctx ends.
func (r *receiver) work(ctx context.Context) {
	for ctx.Err() == nil {
		found, err := r.store.process(ctx)
		if err != nil && ctx.Err() == nil {
			log.Printf("processing: %v", err)
		}
		if found && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.stored:
		case <-time.After(time.Second): // try again after an error
		}
	}
}
