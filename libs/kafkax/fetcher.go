package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// fetcher fetches the member's partitions that a broker leads, in one request after the other. The broker remembers the partitions
// and offsets of the last request in a session, so that each request contains only changes, and each response only partitions with messages.
type fetcher struct {
	*member
	broker         int32
	session, epoch int32
	sent           map[place]int64 // the offsets that the session has
}

const (
	fetchPause  = 250 * time.Millisecond // after a request that failed
	pausedPause = 50 * time.Millisecond  // while all partitions are blocked
)

// fetchFrom starts a fetcher for a broker, unless it has one.
func (m *member) fetchFrom(ctx context.Context, broker int32, end context.CancelCauseFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if broker == noLeader || m.fetching[broker] || ctx.Err() != nil {
		return
	}
	m.fetching[broker] = true
	f := &fetcher{member: m, broker: broker, sent: map[place]int64{}}
	m.work.Go(func() {
		if err := f.run(ctx); err != nil {
			end(err)
		}
	})
}

// run fetches until ctx ends or the broker leads no partition. It returns an error if a partition cannot be fetched.
func (f *fetcher) run(ctx context.Context) error {
	for ctx.Err() == nil && !f.idle() {
		f.findStarts(ctx)
		req, requested := f.request()
		if len(requested) == 0 {
			pause(ctx, pausedPause)
			continue
		}
		res, err := f.client.fetch(ctx, f.broker, req)
		if err == nil {
			err = res.err
		}
		if err != nil {
			f.failed(ctx, err, requested)
			continue
		}
		f.session, f.epoch = res.session, f.epoch+1
		list, err := f.accept(res, requested)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		select {
		case f.arrived <- list:
		case <-ctx.Done():
		}
	}
	return nil
}

// idle reports whether the broker leads no partition. Then a later fetcher may be started.
func (f *fetcher) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.assigned {
		if p.leads(f.broker) {
			return false
		}
	}
	delete(f.fetching, f.broker)
	return true
}

// failed begins a new session, after a pause unless only the session was lost.
func (f *fetcher) failed(ctx context.Context, err error, requested map[place]int64) {
	f.session, f.epoch, f.sent = 0, 0, map[place]int64{}
	if errors.Is(err, kafka.FetchSessionIDNotFound) || errors.Is(err, kafka.InvalidFetchSessionEpoch) || ctx.Err() != nil {
		return
	}
	f.Log.Warn("messages not fetched; trying again", slog.String("group", f.Group), slog.Any("error", err))
	for at := range requested {
		f.assigned[at].lost(f.broker)
	}
	f.findLeaders()
	pause(ctx, fetchPause)
}

// findStarts finds the offset of the first message of partitions that begin there.
func (f *fetcher) findStarts(ctx context.Context) {
	unknown := map[place]int32{}
	for at, p := range f.assigned {
		if offset, ok := p.requested(f.broker); ok && offset == fromStart {
			unknown[at] = f.broker
		}
	}
	if len(unknown) == 0 {
		return
	}
	starts, err := f.client.offsets(ctx, kafka.FirstOffset, unknown)
	if err != nil {
		f.failed(ctx, err, nil)
		for at := range unknown {
			f.assigned[at].lost(f.broker)
		}
		return
	}
	for at, start := range starts {
		f.assigned[at].move(fromStart, start)
	}
}

// request returns the next request, and the offsets of all partitions that it fetches.
func (f *fetcher) request() (*fetch.Request, map[place]int64) {
	requested := map[place]int64{}
	for at, p := range f.assigned {
		if offset, ok := p.requested(f.broker); ok && offset != fromStart {
			requested[at] = offset
		}
	}
	if f.session == 0 {
		f.epoch, f.sent = 0, map[place]int64{} // the broker has no session for this member, or not yet
	}
	req := &fetch.Request{
		SessionID: f.session, SessionEpoch: f.epoch, MaxBytes: fetchBytes, MinBytes: 1, MaxWaitTime: int32(idleWait.Milliseconds()),
	}
	if f.FetchWait > 0 {
		req.MinBytes, req.MaxWaitTime = fetchBytes/2, int32(f.FetchWait.Milliseconds())
	}
	topics, forgotten := map[string][]fetch.RequestPartition{}, map[string][]int32{}
	for at, offset := range requested {
		if known, ok := f.sent[at]; ok && known == offset {
			continue
		}
		f.sent[at] = offset
		topics[at.topic] = append(topics[at.topic], fetch.RequestPartition{
			Partition: at.id, CurrentLeaderEpoch: -1, FetchOffset: offset, LogStartOffset: -1, PartitionMaxBytes: fetchBytesEach,
		})
	}
	for at := range f.sent {
		if _, ok := requested[at]; !ok {
			delete(f.sent, at)
			forgotten[at.topic] = append(forgotten[at.topic], at.id)
		}
	}
	for topic, list := range topics {
		req.Topics = append(req.Topics, fetch.RequestTopic{Topic: topic, Partitions: list})
	}
	for topic, list := range forgotten {
		req.ForgottenTopics = append(req.ForgottenTopics, fetch.RequestForgottenTopic{Topic: topic, Partitions: list})
	}
	return req, requested
}

// accept returns the messages of a response as portions. It returns an error if a partition cannot be fetched.
func (f *fetcher) accept(res *fetched, requested map[place]int64) ([]*portion, error) {
	var list []*portion
	for _, one := range res.partitions {
		p := f.assigned[one.place]
		offset, ok := requested[one.place]
		if !ok {
			continue
		}
		if one.err != nil {
			if err := f.refused(p, offset, one.err); err != nil {
				return nil, err
			}
			continue
		}
		p.end.Store(one.end)
		records, next, err := one.records(offset)
		if err != nil {
			return nil, err
		}
		if next == offset || !p.move(offset, next) {
			continue
		}
		list = append(list, &portion{partition: p, records: records, from: offset, next: next, reset: p.reset.Swap(false)})
	}
	return list, nil
}

// refused handles the error of a partition. It returns an error if the partition cannot be fetched.
func (f *fetcher) refused(p *partition, offset int64, err error) error {
	var code kafka.Error
	switch errors.As(err, &code); {
	case code == kafka.OffsetOutOfRange:
		// Retention has deleted the messages, or the topic was created again.
		f.Log.Warn("messages lost at the brokers; continuing with the first one", slog.String("group", f.Group),
			slog.String("topic", p.topic), slog.Int("partition", int(p.id)), slog.Int64("offset", offset))
		p.reset.Store(true)
		p.move(offset, fromStart)
	case code.Temporary() && (code != kafka.UnknownTopicOrPartition || offset == 0):
		p.lost(f.broker)
		f.findLeaders()
	default: // an unknown topic was deleted: if it is created again, its offsets begin again
		return fmt.Errorf("fetch topic %s partition %d: %w", p.topic, p.id, err)
	}
	return nil
}
