package kafkax

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"
)

// Writer is a Producer. Calls of Produce wait for each other, so that a partition never has two requests in flight, which preserves
// the order per key.
type Writer struct {
	cluster Cluster
	topics  []Topic
	client  *client
	slot    chan struct{}      // holds a value while no call is in progress
	leaders map[string][]int32 // of the partitions of each topic, with prefix, that was written to
}

const (
	produceTimeout  = 10 * time.Second // of one request
	deliveryTimeout = 20 * time.Second // of one call of Produce; shorter than the time-out of the relay's open transaction
	allReplicas     = -1               // acknowledge a message
)

// NewWriter creates a writer to topics with the cluster's prefix. It does not connect. The given topics are created if the brokers
// do not know one, for example after they lost their disks.
func NewWriter(c Cluster, topics ...Topic) *Writer {
	w := &Writer{cluster: c, topics: topics, client: c.client(), slot: make(chan struct{}, 1), leaders: map[string][]int32{}}
	w.slot <- struct{}{}
	return w
}

// Produce implements Producer. After an error, some messages may have been stored. Produce all of them again.
func (w *Writer) Produce(ctx context.Context, msgs ...Message) error {
	select {
	case <-w.slot:
		defer func() { w.slot <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("write to kafka: %w", ctx.Err())
	}
	err := w.produce(ctx, msgs)
	if unknownTopic(err) && len(w.topics) > 0 {
		if err = EnsureTopics(ctx, w.cluster, atLeast(w.topics, msgs)); err != nil {
			return err
		}
		err = w.produce(ctx, msgs)
	}
	if err != nil {
		return fmt.Errorf("write to kafka: %w", err)
	}
	return nil
}

// unknownTopic reports whether a broker does not know a topic or partition that was written to.
func unknownTopic(err error) bool { return errors.Is(err, kafka.UnknownTopicOrPartition) }

// Close closes the connections. No call of Produce may be in progress.
func (w *Writer) Close() error {
	w.client.close()
	return nil
}

// queues contains the messages of each partition that are not stored, as the batches that are written one after the other.
type queues map[place][][]Message

// produce writes the first batch of each partition in one request to each broker, until none is left. If a partition has moved, it
// asks for the new leader and repeats what may not be stored.
func (w *Writer) produce(ctx context.Context, msgs []Message) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	var left queues
	for attempt := 0; ; attempt++ {
		err := w.findLeaders(ctx, msgs)
		if err == nil && left == nil {
			left, err = w.distribute(msgs)
		}
		for err == nil && len(left) > 0 {
			err = w.round(ctx, left)
		}
		if err == nil {
			return nil
		}
		clear(w.leaders) // a partition may have been added or moved
		if !transient(err) && (attempt > 0 || !unknownTopic(err)) {
			return err
		}
		pause(ctx, metadataAge)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// findLeaders asks for the leaders of the topics whose leaders are not known.
func (w *Writer) findLeaders(ctx context.Context, msgs []Message) error {
	var unknown []string
	for _, m := range msgs {
		name := w.cluster.Prefix + m.Topic
		if _, known := w.leaders[name]; !known && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	found, err := w.client.topics(ctx, unknown...)
	if err != nil {
		return err
	}
	for _, t := range found.Topics {
		if t.ErrorCode != 0 {
			return fmt.Errorf("topic %s: %w", t.Name, kafka.Error(t.ErrorCode))
		}
		list := make([]int32, len(t.Partitions))
		for _, p := range t.Partitions {
			if int(p.PartitionIndex) < len(list) {
				list[p.PartitionIndex] = p.LeaderID // -1 while there is none
			}
		}
		w.leaders[t.Name] = list
	}
	return nil
}

// Upper bounds of the bytes of a record in addition to its fields.
const (
	recordOverhead = 40
	headerOverhead = 10
)

func distributedSize(m Message) int {
	size := recordOverhead + len(m.Key) + len(m.Value)
	for k, v := range m.Headers {
		size += headerOverhead + len(k) + len(v)
	}
	return size
}

// distribute returns the queues of the messages' partitions.
func (w *Writer) distribute(msgs []Message) (queues, error) {
	out, sizes := queues{}, map[place]int{} // of the last batch
	for _, m := range msgs {
		name := w.cluster.Prefix + m.Topic
		id, err := partitionOf(m, len(w.leaders[name]))
		if err != nil {
			return nil, fmt.Errorf("topic %s: %w", name, err)
		}
		at, size := place{name, id}, distributedSize(m)
		if q := out[at]; len(q) > 0 && sizes[at]+size <= maxMessageBytes {
			q[len(q)-1] = append(q[len(q)-1], m)
			sizes[at] += size
		} else {
			out[at] = append(q, []Message{m})
			sizes[at] = batchHeaderBytes + size
		}
	}
	return out, nil
}

// round writes the first batch of each queue in one request to each broker, and removes those that are stored. It returns an error
// unless all are stored.
func (w *Writer) round(ctx context.Context, left queues) error {
	requests := map[int32][]place{}
	for at := range left {
		leader := w.leaders[at.topic][at.id]
		if leader < 0 {
			return fmt.Errorf("topic %s partition %d: %w", at.topic, at.id, kafka.LeaderNotAvailable)
		}
		requests[leader] = append(requests[leader], at)
	}
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	for broker, places := range requests {
		req := request(left, places)
		all.Go(func() {
			res, err := send[*produce.Response](ctx, w.client, produceTimeout, &direct{Message: req, broker: broker})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = left.remove(res, places)
			}
			failed = worse(failed, err)
		})
	}
	all.Wait()
	return failed
}

// worse returns the error that decides: one that a repetition does not remove, if there is one.
func worse(a, b error) error {
	if a == nil || b != nil && !transient(b) {
		return b
	}
	return a
}

// request returns the request that writes the first batches.
func request(left queues, places []place) *produce.Request {
	topics := map[string][]produce.RequestPartition{}
	for _, at := range places {
		batch := left[at][0]
		records := make([]protocol.Record, len(batch))
		for i, m := range batch {
			records[i] = protocol.Record{Key: protocol.NewBytes([]byte(m.Key)), Value: protocol.NewBytes(m.Value)}
			for k, v := range m.Headers {
				records[i].Headers = append(records[i].Headers, protocol.Header{Key: k, Value: []byte(v)})
			}
		}
		// Uncompressed, so that the size of what a consumer reads is bounded by what the brokers send.
		topics[at.topic] = append(topics[at.topic], produce.RequestPartition{
			Partition: at.id, RecordSet: protocol.RecordSet{Version: 2, Records: protocol.NewRecordReader(records...)},
		})
	}
	req := &produce.Request{Acks: allReplicas, Timeout: int32(produceTimeout.Milliseconds())}
	for topic, partitions := range topics {
		req.Topics = append(req.Topics, produce.RequestTopic{Topic: topic, Partitions: partitions})
	}
	return req
}

// remove removes the batches that are stored, and returns an error if one is not.
func (left queues) remove(res *produce.Response, places []place) (err error) {
	stored := 0
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			at := place{t.Topic, p.Partition}
			switch {
			case p.ErrorCode != 0:
				err = worse(err, fmt.Errorf("topic %s partition %d: %w", t.Topic, p.Partition, refusal(p.ErrorCode, p.ErrorMessage)))
			case len(left[at]) == 1:
				stored++
				delete(left, at)
			case len(left[at]) > 1:
				stored++
				left[at] = left[at][1:]
			}
		}
	}
	if err == nil && stored < len(places) {
		err = errMalformed
	}
	return err
}
