package domain

import (
	"context"
	"sync"
)

// Places are for running calls, such as those to one service. A client, which is a tenant or an address without one, can use only some of
// them, so that its slow calls, or very many of them, leave connections and processors to the others. Its further calls wait only for its
// own.
type Places struct {
	all  chan struct{} // one for each running call
	each int           // of a client

	mu  sync.Mutex
	own map[string]*share // guarded by mu: of the clients with calls that run or wait
}

// share are the places of a client.
type share struct {
	calls   int // that run or wait
	running chan struct{}
}

// NewPlaces returns places for `all` calls, and for `each` of a client.
func NewPlaces(all, each int) *Places {
	return &Places{all: make(chan struct{}, all), each: each, own: map[string]*share{}}
}

// Acquire takes a place for a call of the client. It waits until ctx ends. The caller must call release when the call has ended.
func (p *Places) Acquire(ctx context.Context, client string) (release func(), err error) {
	own := p.enter(client)
	for _, room := range [...]chan struct{}{own.running, p.all} {
		select {
		case room <- struct{}{}:
			continue
		default:
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			if room == p.all {
				<-own.running
			}
			p.leave(client, own)
			return nil, ctx.Err() //nolint:wrapcheck // the caller says what it waited for
		}
	}
	return func() {
		<-p.all
		<-own.running
		p.leave(client, own)
	}, nil
}

// Free reports whether a call of the client would not wait.
func (p *Places) Free(client string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.own[client]
	return len(p.all) < cap(p.all) && (own == nil || len(own.running) < cap(own.running))
}

// Limits returns the number of places, and of those of a client.
func (p *Places) Limits() (all, each int) { return cap(p.all), p.each }

func (p *Places) enter(client string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.own[client]
	if own == nil {
		own = &share{running: make(chan struct{}, p.each)}
		p.own[client] = own
	}
	own.calls++
	return own
}

func (p *Places) leave(client string, own *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.calls--; own.calls == 0 {
		delete(p.own, client)
	}
}
