package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// member is one run of a consumer. It fetches the messages of all its partitions in one request to each broker, and handles what it
// fetched before it fetches more. A partition whose message is blocked continues in the background and is not fetched meanwhile.
type member struct {
	*Consumer
	client *kgo.Client
	admin  *kadm.Client
	done   *offsets

	mu       sync.Mutex
	assigned map[place]*partition
}

// place names a partition.
type place struct {
	topic string // with prefix
	id    int32
}

func newMember(c *Consumer) *member {
	return &member{Consumer: c, done: &offsets{at: map[place]kgo.EpochOffset{}}, assigned: map[place]*partition{}}
}

// portion is a part of a fetch: the records of one partition that have not been handled.
type portion struct {
	*partition
	records []*kgo.Record
}

// poll fetches and handles until ctx ends. It returns an error if a partition cannot be fetched any more.
func (m *member) poll(ctx context.Context) error {
	for ctx.Err() == nil {
		fetches := m.client.PollRecords(ctx, maxBatch)
		if m.HandleBatch != nil && m.FetchWait == 0 && ctx.Err() == nil && fetches.NumRecords() < maxBatch {
			pause(ctx, gatherFor)
			fetches = append(fetches, m.client.PollRecords(nil, maxBatch)...) //nolint:staticcheck,contextcheck // nil: what has arrived, without a wait
		}
		if err := m.failure(ctx, fetches); err != nil {
			return err
		}
		m.handle(ctx, fetches)
		m.client.AllowRebalance()
	}
	return nil
}

// failure returns the first error of a partition after which the client does not fetch it any more. It logs errors from which the
// client recovers: the loss of messages at the brokers, and of the group's coordinator.
func (m *member) failure(ctx context.Context, fetches kgo.Fetches) error {
	if ctx.Err() != nil {
		return nil
	}
	for _, e := range fetches.Errors() {
		var lost *kgo.ErrDataLoss
		if e.Topic != "" && !errors.As(e.Err, &lost) {
			return fmt.Errorf("fetch topic %s partition %d: %w", e.Topic, e.Partition, e.Err)
		}
		m.Log.Warn("fetch", slog.String("group", m.Group), slog.Any("error", e.Err))
	}
	return nil
}

// handle handles the records of a fetch, topics in parallel. It returns when all are handled, except those of blocked partitions.
func (m *member) handle(ctx context.Context, fetches kgo.Fetches) {
	topics := map[string][]*portion{}
	m.mu.Lock()
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		p := m.assigned[place{f.Topic, f.Partition}]
		if p == nil || len(f.Records) == 0 {
			return
		}
		p.end.Store(f.HighWatermark)
		topics[f.Topic] = append(topics[f.Topic], &portion{p, f.Records})
	})
	m.mu.Unlock()
	var all sync.WaitGroup
	for _, list := range topics {
		all.Go(func() {
			if list = merge(list); m.HandleBatch != nil && len(list) > 1 {
				limited, cancel := context.WithTimeout(ctx, batchTimeout)
				defer cancel()
				m.inBatches(limited, list)
			}
			m.separately(ctx, list)
		})
	}
	all.Wait()
}

// merge joins the portions of the same partition, in order.
func merge(list []*portion) []*portion {
	var out []*portion
	first := map[*partition]*portion{}
	for _, one := range list {
		if p := first[one.partition]; p != nil {
			p.records = append(p.records, one.records...)
			continue
		}
		first[one.partition] = one
		out = append(out, one)
	}
	return out
}

// inBatches handles records of all portions in batches, until none is left or a batch fails. It removes the handled ones.
func (m *member) inBatches(ctx context.Context, list []*portion) {
	for {
		batch, taken := m.next(list)
		if len(batch) < 2 || !m.handleBatch(ctx, batch) {
			return
		}
		for i, one := range list {
			if n := taken[i]; n > 0 {
				m.passed(one.records[n-1])
				one.records = one.records[n:]
			}
		}
	}
}

// next returns the next batch and the number of records of each portion in it: at least one record, and otherwise up to
// BatchBytes and maxBatch.
func (m *member) next(list []*portion) (batch []*kgo.Record, taken []int) {
	limit, bytes := m.batchBytes(), 0
	taken = make([]int, len(list))
	for i, one := range list {
		for _, r := range one.records {
			if bytes += len(r.Value); len(batch) > 0 && (bytes > limit || len(batch) == maxBatch) {
				return batch, taken
			}
			batch = append(batch, r)
			taken[i]++
		}
	}
	return batch, taken
}

func (c *Consumer) batchBytes() int {
	if c.BatchBytes > 0 {
		return c.BatchBytes
	}
	return DefaultBatchBytes
}

// separately handles each portion on its own, in parallel. It returns when all are handled, when the others are blocked, after soon,
// or when ctx ends. Partitions whose portions are not handled then are not fetched until they are.
func (m *member) separately(ctx context.Context, list []*portion) {
	limit, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	var working []*partition
	for _, one := range list {
		if len(one.records) > 0 {
			one.start(one.records)
			working = append(working, one.partition)
		}
	}
	for _, p := range working {
		select {
		case <-p.finished:
		case <-p.blocked:
			p.detach()
		case <-limit.Done():
			p.detach()
		}
	}
}

// passed notes that a record is handled.
func (m *member) passed(r *kgo.Record) {
	next := r.Offset + 1
	m.done.set(place{r.Topic, r.Partition}, kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: next})
	m.mu.Lock()
	p := m.assigned[place{r.Topic, r.Partition}]
	m.mu.Unlock()
	if p != nil {
		p.next.Store(next)
		m.gauge(r.Topic, r.Partition, p.end.Load()-next)
	}
}

// assign is called when partitions are assigned.
func (m *member) assign(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for topic, list := range added {
		for _, id := range list {
			m.assigned[place{topic, id}] = newPartition(m, place{topic, id})
		}
	}
}

// revoke is called when partitions move to another member. It waits for their handlers and commits what they handled.
func (m *member) revoke(ctx context.Context, _ *kgo.Client, removed map[string][]int32) {
	m.remove(removed)
	m.commit(ctx)
	m.done.take() // what could not be committed; the next member handles it again
}

// lose is called when the group has given the partitions to other members already.
func (m *member) lose(_ context.Context, _ *kgo.Client, removed map[string][]int32) {
	m.remove(removed)
	m.done.take()
}

func (m *member) remove(removed map[string][]int32) {
	var stopped []*partition
	m.mu.Lock()
	for topic, list := range removed {
		for _, id := range list {
			if p := m.assigned[place{topic, id}]; p != nil {
				stopped = append(stopped, p)
				delete(m.assigned, place{topic, id})
			}
		}
	}
	m.mu.Unlock()
	for _, p := range stopped {
		p.stop()
	}
}

// close stops the handlers, commits the last offsets and leaves the group.
func (m *member) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownDeadline)
	defer cancel()
	m.mu.Lock()
	all := map[string][]int32{}
	for at := range m.assigned {
		all[at.topic] = append(all[at.topic], at.id)
	}
	m.mu.Unlock()
	m.revoke(ctx, m.client, all)
	m.client.AllowRebalance()
	if err := m.client.LeaveGroupContext(ctx); err != nil {
		m.Log.Debug("consumer group not left", slog.String("group", m.Group), slog.Any("error", err))
	}
	m.client.CloseAllowingRebalance()
}

// commitRegularly commits the offsets of handled messages until ctx ends.
func (m *member) commitRegularly(ctx context.Context) {
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			m.commit(ctx)
		}
	}
}

func (m *member) commit(ctx context.Context) {
	batch := m.done.take()
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	list := map[string]map[int32]kgo.EpochOffset{}
	for at, next := range batch {
		if list[at.topic] == nil {
			list[at.topic] = map[int32]kgo.EpochOffset{}
		}
		list[at.topic][at.id] = next
	}
	m.client.CommitOffsetsSync(ctx, list, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, res *kmsg.OffsetCommitResponse, err error) {
		if err = errors.Join(err, commitError(res)); err != nil {
			m.Log.Warn("offsets not committed; messages can arrive twice", slog.String("group", m.Group), slog.Any("error", err))
			m.done.giveBack(batch)
		}
	})
}

// commitError returns the first error of a response.
func commitError(res *kmsg.OffsetCommitResponse) error {
	if res == nil {
		return nil
	}
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("topic %s partition %d: %w", t.Topic, p.Partition, err)
			}
		}
	}
	return nil
}

// watch reports the lag regularly, even while a message is blocked. It ends the run if a topic is unknown or was created again,
// because the client would wait for the old one.
func (m *member) watch(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	known := map[string]kadm.TopicDetail{}
	for {
		if err := m.checkTopics(ctx, known); err != nil {
			end(err)
			return
		}
		if err := m.measure(ctx); err != nil && ctx.Err() == nil {
			m.Log.Debug("consumer lag unknown", slog.String("group", m.Group), slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

var errRecreated = errors.New("the topic was created again: its offsets begin again")

// checkTopics compares the topics with those of the earlier calls. If partitions were added, the group distributes them now instead
// of after minutes. It returns no error if the brokers do not respond.
func (m *member) checkTopics(ctx context.Context, known map[string]kadm.TopicDetail) error {
	found, err := m.admin.ListTopics(ctx, m.prefixed()...)
	if err != nil {
		return nil
	}
	for name, t := range found {
		switch {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			return fmt.Errorf("topic %s: %w", name, t.Err)
		case t.Err != nil:
			continue
		}
		before, seen := known[name]
		switch {
		case seen && before.ID != t.ID:
			return fmt.Errorf("topic %s: %w", name, errRecreated)
		case seen && len(before.Partitions) < len(t.Partitions):
			m.client.ForceMetadataRefresh()
		}
		known[name] = t
	}
	return nil
}

// measure reports the lag of the assigned partitions: the messages after the last handled or committed one.
func (m *member) measure(ctx context.Context) error {
	ends, err := m.admin.ListEndOffsets(ctx, m.prefixed()...)
	if err != nil {
		return err
	}
	starts, err := m.admin.ListStartOffsets(ctx, m.prefixed()...)
	if err != nil {
		return err
	}
	committed := m.client.CommittedOffsets()
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, p := range m.assigned {
		end, ok := ends.Lookup(at.topic, at.id)
		if !ok || end.Err != nil {
			continue
		}
		next := max(p.next.Load(), committed[at.topic][at.id].Offset)
		if start, ok := starts.Lookup(at.topic, at.id); ok && start.Err == nil {
			next = max(next, start.Offset)
		}
		m.gauge(at.topic, at.id, end.Offset-next)
	}
	return nil
}

// offsets stores the next offsets to commit.
type offsets struct {
	mu sync.Mutex
	at map[place]kgo.EpochOffset
}

func (o *offsets) set(at place, next kgo.EpochOffset) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at[at] = next
}

func (o *offsets) take() map[place]kgo.EpochOffset {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.at
	o.at = map[place]kgo.EpochOffset{}
	return at
}

// giveBack returns offsets whose commit failed. Later ones replace them.
func (o *offsets) giveBack(batch map[place]kgo.EpochOffset) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, next := range batch {
		if _, later := o.at[at]; !later {
			o.at[at] = next
		}
	}
}
