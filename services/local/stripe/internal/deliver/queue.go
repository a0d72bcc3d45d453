package deliver

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"holdfast.dev/services/local/stripe/internal/domain"
)

// item is a delivery in a queue.
type item struct {
	domain.Delivery
	due time.Time
	seq int // position in the queue; orders items that are due at the same time
}

// queue sends one delivery after the other, in the order of their due times.
type queue struct {
	mu    sync.Mutex
	items items
	last  int
	wake  chan struct{}
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (l *queue) add(i item) {
	l.mu.Lock()
	l.last++
	i.seq = l.last
	heap.Push(&l.items, i)
	l.mu.Unlock()
	l.notify()
}

func (l *queue) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *queue) run(ctx context.Context, s *Sender) {
	for ctx.Err() == nil {
		next, wait := l.next(s)
		if next != nil {
			s.send(ctx, *next)
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-time.After(wait):
		}
	}
}

// next removes and returns an item that is due, or returns how long to wait. All items of a queue belong to one account.
func (l *queue) next(s *Sender) (*item, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) == 0 || s.Modes.Of(l.items[0].Scope.Account).Stopped {
		return nil, time.Minute
	}
	if wait := time.Until(l.items[0].due); wait > 0 {
		return nil, wait
	}
	first, _ := heap.Pop(&l.items).(item)
	return &first, 0
}

// items is a heap ordered by due time and sequence.
type items []item

func (h items) Len() int { return len(h) }

func (h items) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].seq < h[j].seq
	}
	return h[i].due.Before(h[j].due)
}

func (h items) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds an item at the end.
func (h *items) Push(x any) {
	i, _ := x.(item)
	*h = append(*h, i)
}

// Pop removes the last item.
func (h *items) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
