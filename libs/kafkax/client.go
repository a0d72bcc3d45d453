package kafkax

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

const (
	clientID       = "holdfast"
	dialTimeout    = 3 * time.Second        // for one connection with TLS and SASL
	requestTimeout = 5 * time.Second        // for the response to a request, in addition to the time that the request lets the broker wait
	retryTimeout   = 10 * time.Second       // for a request with its repetitions; fetches and writes have their own limits
	metadataAge    = 250 * time.Millisecond // how soon a client asks again for the leaders of partitions
	addressesAge   = time.Minute            // how often a client asks for the addresses of the brokers; it also asks after an error
	connectionIdle = 3 * time.Minute        // after which a connection is closed
)

// anyBroker sends a request to one of Cluster.Brokers.
const anyBroker = -1

// place names a partition.
type place struct {
	topic string // with prefix
	id    int32
}

// client sends requests to brokers.
type client struct {
	transport *kafka.Transport
	addr      net.Addr
}

func (c Cluster) client() *client {
	return &client{addr: kafka.TCP(c.Brokers...), transport: &kafka.Transport{
		Dial: c.dial, DialTimeout: dialTimeout, IdleTimeout: connectionIdle, ClientID: clientID, SASL: c.SASL,
		MetadataTTL: addressesAge, MetadataTopics: []string{}, // no topics: direct does not use them
	}}
}

// close closes the connections, those in use when they become idle.
func (c *client) close() { c.transport.CloseIdleConnections() }

// direct is a request to a given broker. The transport would select the broker by the topics of its cache, answer a request for
// metadata from that cache, and send a request for each partition to list offsets.
type direct struct {
	protocol.Message
	broker  int32
	receive func(r io.Reader, version int16) (protocol.Message, error) // reads the response; nil: the library does
	version int16
}

func (d *direct) Broker(protocol.Cluster) (protocol.Broker, error) {
	return protocol.Broker{ID: d.broker}, nil
}

func (d *direct) Required(versions map[protocol.ApiKey]int16) bool {
	d.version = versions[d.ApiKey()]
	return true
}

func (d *direct) RawExchange(rw io.ReadWriter) (res protocol.Message, err error) {
	if d.receive == nil {
		res, err = protocol.RoundTrip(rw, d.version, 1, clientID, d.Message)
	} else if err = protocol.WriteRequest(rw, d.version, 1, clientID, d.Message); err == nil {
		res, err = d.receive(rw, d.version)
	}
	return &response{res}, err
}

// response hides the type of a response from the transport, which updates its cache after some types.
type response struct{ protocol.Message }

// send sends a request to a broker. After an error, the client connects again and asks for the addresses of the brokers. wait is how
// long the broker may wait before it responds.
func send[R protocol.Message](ctx context.Context, c *client, wait time.Duration, d *direct) (res R, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait+requestTimeout)
	defer cancel()
	m, err := c.transport.RoundTrip(ctx, c.addr, d)
	if err != nil {
		c.close()
		return res, err
	}
	if hidden, ok := m.(*response); ok {
		if res, ok = hidden.Message.(R); ok {
			return res, nil
		}
	}
	return res, fmt.Errorf("response of type %T", m)
}

// failure returns the error of a code, or nil for 0.
func failure(code int16) error {
	if code == 0 {
		return nil
	}
	return kafka.Error(code)
}

// refusal is failure with the broker's explanation.
func refusal(code int16, message string) error {
	if err := failure(code); err == nil || message == "" {
		return err
	}
	return fmt.Errorf("%w: %s", kafka.Error(code), message)
}

// transient reports whether a request can succeed later. A broker that is not reached may be replaced.
func transient(err error) bool {
	var refused kafka.Error
	if errors.As(err, &refused) {
		return refused.Temporary() && refused != kafka.UnknownTopicOrPartition || refused == kafka.BrokerNotAvailable
	}
	return err != nil
}

// repeated calls try again while its error is transient, for at most retryTimeout.
func repeated[T any](ctx context.Context, try func() (T, error)) (T, error) {
	for limit := time.Now().Add(retryTimeout); ; {
		v, err := try()
		if !transient(err) || ctx.Err() != nil || time.Now().After(limit) {
			return v, err
		}
		pause(ctx, metadataAge)
	}
}

// topics returns the present metadata of topics.
func (c *client) topics(ctx context.Context, names ...string) (*metadata.Response, error) {
	return send[*metadata.Response](ctx, c, 0, &direct{Message: &metadata.Request{TopicNames: names}, broker: anyBroker})
}

// leaders returns the broker that leads each partition. It returns an error unless each topic exists and each of its partitions has a leader.
func leaders(found *metadata.Response) (map[place]int32, error) {
	out := map[place]int32{}
	for _, t := range found.Topics {
		if t.ErrorCode != 0 {
			return nil, fmt.Errorf("topic %s: %w", t.Name, kafka.Error(t.ErrorCode))
		}
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 && kafka.Error(p.ErrorCode) != kafka.ReplicaNotAvailable {
				return nil, fmt.Errorf("topic %s partition %d: %w", t.Name, p.PartitionIndex, kafka.Error(p.ErrorCode))
			}
			out[place{t.Name, p.PartitionIndex}] = p.LeaderID
		}
	}
	return out, nil
}

// bounds are the first offset of each partition, and the one after the last message.
type bounds struct{ starts, ends map[place]int64 }

// bounds returns the bounds of all partitions of topics.
func (c *client) bounds(ctx context.Context, names ...string) (bounds, error) {
	return repeated(ctx, func() (b bounds, err error) {
		found, err := c.topics(ctx, names...)
		if err != nil {
			return b, fmt.Errorf("kafka: %w", err)
		}
		led, err := leaders(found)
		if err != nil {
			return b, err
		}
		if b.starts, err = c.offsets(ctx, kafka.FirstOffset, led); err != nil {
			return b, err
		}
		b.ends, err = c.offsets(ctx, kafka.LastOffset, led)
		return b, err
	})
}

// offsets returns the offsets of partitions at a time: kafka.FirstOffset or kafka.LastOffset.
func (c *client) offsets(ctx context.Context, when int64, led map[place]int32) (map[place]int64, error) {
	requests := map[int32]map[string][]listoffsets.RequestPartition{}
	for at, broker := range led {
		if requests[broker] == nil {
			requests[broker] = map[string][]listoffsets.RequestPartition{}
		}
		requests[broker][at.topic] = append(requests[broker][at.topic],
			listoffsets.RequestPartition{Partition: at.id, CurrentLeaderEpoch: -1, Timestamp: when})
	}
	out := make(map[place]int64, len(led))
	for broker, topics := range requests {
		req := &listoffsets.Request{ReplicaID: -1}
		for topic, partitions := range topics {
			req.Topics = append(req.Topics, listoffsets.RequestTopic{Topic: topic, Partitions: partitions})
		}
		res, err := send[*listoffsets.Response](ctx, c, 0, &direct{Message: req, broker: broker})
		if err != nil {
			return nil, fmt.Errorf("list offsets: %w", err)
		}
		for _, t := range res.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					return nil, fmt.Errorf("list offsets of topic %s partition %d: %w", t.Topic, p.Partition, kafka.Error(p.ErrorCode))
				}
				out[place{t.Topic, p.Partition}] = p.Offset
			}
		}
	}
	return out, nil
}

// committed returns the offsets that a group committed. It has none for a partition without a committed offset.
func (c *client) committed(ctx context.Context, group string, of map[place]int64) (map[place]int64, error) {
	topics := map[string][]int{}
	for at := range of {
		topics[at.topic] = append(topics[at.topic], int(at.id))
	}
	return repeated(ctx, func() (map[place]int64, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout) // it also asks for the coordinator
		defer cancel()
		res, err := c.kafka().OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: topics})
		if err == nil {
			err = res.Error
		}
		if errors.Is(err, kafka.GroupIdNotFound) {
			return nil, nil
		}
		if err != nil {
			c.close()
			return nil, fmt.Errorf("offsets of group %s: %w", group, err)
		}
		out := map[place]int64{}
		for topic, list := range res.Topics {
			for _, p := range list {
				if p.Error != nil {
					return nil, fmt.Errorf("offsets of group %s: topic %s partition %d: %w", group, topic, p.Partition, p.Error)
				}
				if p.CommittedOffset >= 0 {
					out[place{topic, int32(p.Partition)}] = p.CommittedOffset
				}
			}
		}
		return out, nil
	})
}

// kafka returns the library's client with the same connections.
func (c *client) kafka() *kafka.Client { return &kafka.Client{Addr: c.addr, Transport: c.transport} }

// commit commits an offset for a group without members.
func (c *client) commit(ctx context.Context, group string, at place, next int64) error {
	_, err := repeated(ctx, func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
		defer cancel()
		res, err := c.kafka().OffsetCommit(ctx, &kafka.OffsetCommitRequest{
			GroupID: group, GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{at.topic: {{Partition: int(at.id), Offset: next}}},
		})
		if err != nil {
			c.close()
			return struct{}{}, err
		}
		for _, list := range res.Topics {
			for _, p := range list {
				err = errors.Join(err, p.Error)
			}
		}
		return struct{}{}, err
	})
	return err
}

// missing returns the number of messages between the committed offsets of a group and the ends. Messages that retention has deleted do not count.
func (b bounds) missing(committed map[place]int64) (n int64) {
	for at, end := range b.ends {
		n += max(0, end-max(b.starts[at], committed[at]))
	}
	return n
}

// open returns the partitions with messages after next, in order.
func (b bounds) open(next map[place]int64) []place {
	var out []place
	for at, end := range b.ends {
		if max(b.starts[at], next[at]) < end {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, func(a, b place) int { return int(a.id - b.id) })
	return out
}
