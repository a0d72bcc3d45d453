package quota

import "context"

// Places limits the calls of a process that run at the same time. A client, such as a tenant, can use only some of the places, so that its
// slow calls, or very many of them, leave some to the others. Its further calls wait only for its own, without a limit on their number.
type Places struct {
	all     chan struct{} // one for each running call
	clients *shares[string]
}

// NewPlaces returns places for `all` calls, and for `each` of a client.
func NewPlaces(all, each int) *Places {
	return &Places{all: make(chan struct{}, all), clients: newShares[string](each, 0)}
}

// TryAcquire takes a place for a call of the client, unless it would have to wait. The caller must call Release when the call has ended.
func (p *Places) TryAcquire(client string) bool {
	own := p.clients.enter(client)
	switch {
	case !try(own.running):
		p.clients.leave(client)
		return false
	case !try(p.all):
		p.clients.free(client)
		return false
	}
	return true
}

// Acquire is TryAcquire for a call that waits, in the order of arrival. It returns the error of ctx if that ends first.
func (p *Places) Acquire(ctx context.Context, client string) error {
	own := p.clients.enter(client)
	if err := take(ctx, own.running, nil, nil); err != nil {
		p.clients.leave(client)
		return err
	}
	if err := take(ctx, p.all, nil, nil); err != nil {
		p.clients.free(client)
		return err
	}
	return nil
}

// Release ends a call of the client.
func (p *Places) Release(client string) {
	<-p.all
	p.clients.free(client)
}

// Limits returns the number of places, and of those of a client.
func (p *Places) Limits() (all, each int) { return cap(p.all), p.clients.each }
