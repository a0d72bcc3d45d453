package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// member is a consumer during one generation of its group. It fetches the messages of all its partitions in one request to each
// broker, and handles what it fetched while it fetches the next ones. A partition whose message is blocked continues in the background
// and is not fetched meanwhile.
type member struct {
	*Consumer
	client      *client
	generation  *kafka.Generation
	distributed map[string]int // the partitions of each topic that this member distributed as the leader of the group, or nil
	done        *offsets
	assigned    map[place]*partition // does not change
	arrived     chan []*portion
	moved       chan struct{} // holds a value when a partition has lost its leader
	work        sync.WaitGroup

	mu       sync.Mutex
	fetching map[int32]bool // the brokers that have a fetcher
}

func newMember(c *Consumer) *member {
	return &member{
		Consumer: c, done: &offsets{at: map[place]int64{}}, assigned: map[place]*partition{}, arrived: make(chan []*portion),
		moved: make(chan struct{}, 1), fetching: map[int32]bool{},
	}
}

// portion is a part of a fetch: the records of one partition that have not been handled. from is the offset that was fetched, and
// next is the one after the records. If reset is true, the brokers do not have the messages before from.
type portion struct {
	*partition
	records    []*record
	from, next int64
	reset      bool
}

var (
	errGenerationEnded = errors.New("the generation of the group has ended")
	errPartitionsAdded = errors.New("partitions were added")
)

// run fetches and handles until the generation or ctx ends, or a partition cannot be fetched. It stops the handlers and commits what they handled,
// before the partitions move to other members.
func (m *member) run(ctx, ended context.Context, leave func()) error {
	running, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ended, func() { end(errGenerationEnded) })
	defer stop()
	m.work.Go(func() { m.commitRegularly(running) })
	m.work.Go(func() { m.watch(running, end) })
	m.poll(ctx, running)
	err := context.Cause(running)
	switch {
	case errors.Is(err, errGenerationEnded), errors.Is(err, errPartitionsAdded):
		err = nil
	default: // leave the group first, because the library joins it again when this function returns
		leave()
		<-ended.Done()
		if ctx.Err() != nil {
			err = nil
		}
	}
	for _, p := range m.assigned {
		p.cancel()
	}
	for _, p := range m.assigned {
		p.stop()
	}
	m.work.Wait()
	m.commit()
	return err
}

// poll handles what is fetched until running ends. Handlers may continue a little longer, until ctx ends.
func (m *member) poll(ctx, running context.Context) {
	for {
		var list []*portion
		select {
		case <-running.Done():
			return
		case list = <-m.arrived:
		}
		if m.HandleBatch != nil && m.FetchWait == 0 && count(list) < maxBatch {
			pause(running, gatherFor)
			select {
			case more := <-m.arrived:
				list = append(list, more...)
			default:
			}
		}
		for len(list) > 0 && running.Err() == nil {
			var now []*portion
			now, list = split(list, maxBatch)
			m.handle(ctx, now)
		}
	}
}

func count(list []*portion) (n int) {
	for _, one := range list {
		n += len(one.records)
	}
	return n
}

// split returns the portions of the first n records, and the rest.
func split(list []*portion, n int) (now, later []*portion) {
	for i, one := range list {
		if n -= len(one.records); n >= 0 {
			now = append(now, one)
			continue
		}
		first, rest := *one, *one
		cut := len(one.records) + n
		first.records, rest.records = one.records[:cut:cut], one.records[cut:]
		first.next, rest.from, rest.reset = rest.records[0].offset, rest.records[0].offset, false
		if len(first.records) > 0 {
			now = append(now, &first)
		} else {
			rest.from, rest.reset = one.from, one.reset
		}
		return now, append([]*portion{&rest}, list[i+1:]...)
	}
	return now, nil
}

// handle handles the records of a fetch, topics in parallel. It returns when all are handled, except those of blocked partitions.
func (m *member) handle(ctx context.Context, list []*portion) {
	topics := map[string][]*portion{}
	for _, one := range list {
		if one.take(one) && len(one.records) > 0 {
			topics[one.topic] = append(topics[one.topic], one)
		}
	}
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
				one.passed(one.records[n-1])
				one.records = one.records[n:]
			}
		}
	}
}

// next returns the next batch and the number of records of each portion in it: at least one record, and otherwise up to
// BatchBytes and maxBatch.
func (m *member) next(list []*portion) (batch []*record, taken []int) {
	limit, bytes := m.batchBytes(), 0
	taken = make([]int, len(list))
	for i, one := range list {
		for _, r := range one.records {
			if bytes += len(r.value); len(batch) > 0 && (bytes > limit || len(batch) == maxBatch) {
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

// commitRegularly commits the offsets of handled messages until ctx ends.
func (m *member) commitRegularly(ctx context.Context) {
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			m.commit()
		}
	}
}

// commit commits the offsets of handled messages. The brokers refuse them if the generation has ended.
func (m *member) commit() {
	batch := m.done.take()
	if len(batch) == 0 {
		return
	}
	list := map[string]map[int]int64{}
	for at, next := range batch {
		if list[at.topic] == nil {
			list[at.topic] = map[int]int64{}
		}
		list[at.topic][int(at.id)] = next
	}
	result := make(chan error, 1)
	go func() { result <- m.generation.CommitOffsets(list) }()
	var err error
	select {
	case err = <-result:
	case <-time.After(commitTimeout + time.Second): // the library's own limit is earlier
		err = context.DeadlineExceeded
	}
	if err != nil {
		m.Log.Warn("offsets not committed; messages can arrive twice", slog.String("group", m.Group), slog.Any("error", err))
		m.done.giveBack(batch)
	}
}

// watch finds the leaders of the partitions, and reports the lag regularly, even while a message is blocked. It ends the run if a topic is unknown.
func (m *member) watch(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for measured := (time.Time{}); ; {
		if err := m.checkTopics(ctx, end); err != nil {
			end(err)
			return
		}
		if time.Since(measured) >= lagEvery {
			measured = time.Now()
			if err := m.measure(ctx); err != nil && ctx.Err() == nil {
				m.Log.Debug("consumer lag unknown", slog.String("group", m.Group), slog.Any("error", err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.moved:
			pause(ctx, metadataAge)
		}
	}
}

// findLeaders makes watch ask for the leaders of the partitions.
func (m *member) findLeaders() {
	select {
	case m.moved <- struct{}{}:
	default:
	}
}

// checkTopics updates the leaders of the partitions and starts the missing fetchers. It returns an error if a topic is unknown, or if partitions were added
// that this member, as the leader of the group, has to distribute.
func (m *member) checkTopics(ctx context.Context, end context.CancelCauseFunc) error {
	found, err := m.client.topics(ctx, m.prefixed()...)
	if err != nil {
		if ctx.Err() == nil {
			m.Log.Debug("leaders of partitions unknown", slog.String("group", m.Group), slog.Any("error", err))
		}
		m.findLeaders()
		return nil
	}
	for _, t := range found.Topics {
		switch err := failure(t.ErrorCode); {
		case errors.Is(err, kafka.UnknownTopicOrPartition):
			return fmt.Errorf("topic %s: %w", t.Name, err)
		case err != nil:
			m.findLeaders()
			continue
		}
		if n, leader := m.distributed[t.Name]; leader && len(t.Partitions) > n {
			return fmt.Errorf("topic %s: %w", t.Name, errPartitionsAdded)
		}
		for _, p := range t.Partitions {
			if one := m.assigned[place{t.Name, p.PartitionIndex}]; one != nil {
				one.setLeader(p.LeaderID)
				m.fetchFrom(ctx, p.LeaderID, end)
			}
		}
	}
	return nil
}

// measure reports the lag of the assigned partitions: the messages after the last handled or committed one.
func (m *member) measure(ctx context.Context) error {
	led := map[place]int32{}
	for at, p := range m.assigned {
		p.mu.Lock()
		if p.leader != noLeader {
			led[at] = p.leader
		}
		p.mu.Unlock()
	}
	ends, err := m.client.offsets(ctx, kafka.LastOffset, led)
	if err != nil {
		return err
	}
	starts, err := m.client.offsets(ctx, kafka.FirstOffset, led)
	if err != nil {
		return err
	}
	for at := range led {
		m.gauge(at.topic, at.id, ends[at]-max(m.assigned[at].next.Load(), starts[at]))
	}
	return nil
}

// offsets stores the next offsets to commit.
type offsets struct {
	mu sync.Mutex
	at map[place]int64
}

func (o *offsets) set(at place, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at[at] = next
}

func (o *offsets) take() map[place]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.at
	o.at = map[place]int64{}
	return at
}

// giveBack returns offsets whose commit failed. Later ones replace them.
func (o *offsets) giveBack(batch map[place]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, next := range batch {
		if _, later := o.at[at]; !later {
			o.at[at] = next
		}
	}
}
