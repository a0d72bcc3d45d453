package peers

import (
	"context"
	"sync"
)

// places are the running calls to one service. A client, which is a tenant or an address without one, can use only some of them, so that
// its slow calls, or very many of them, leave connections and processors to the others. Its further calls wait only for its own.
type places struct {
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

func newPlaces(all, each int) *places {
	return &places{all: make(chan struct{}, all), each: each, own: map[string]*share{}}
}

// acquire takes a place for a call of the client. It waits until ctx ends. The caller must call release when the call has ended.
func (p *places) acquire(ctx context.Context, client string) (release func(), err error) {
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

// free reports whether a call of the client would not wait.
func (p *places) free(client string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.own[client]
	return len(p.all) < cap(p.all) && (own == nil || len(own.running) < cap(own.running))
}

func (p *places) enter(client string) *share {
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

func (p *places) leave(client string, own *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.calls--; own.calls == 0 {
		delete(p.own, client)
	}
}
