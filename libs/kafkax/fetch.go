package kafkax

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// record is a message at its place.
type record struct {
	place
	offset     int64
	time       time.Time
	key, value []byte
	headers    []protocol.Header
}

// fetched is the response to a fetch. It contains the batches as they are: the library's decoder takes a page of 64 KiB for each one,
// and a response may have thousands.
type fetched struct {
	err        error
	session    int32
	partitions []fetchedPartition
}

// ApiKey makes it a response.
func (*fetched) ApiKey() protocol.ApiKey { return protocol.Fetch } //nolint:revive // the library's name

type fetchedPartition struct {
	place
	err     error
	end     int64 // the offset after the last message of the partition
	batches []byte
}

const (
	firstSessionVersion  = 7 // of the fetch requests; Apache Kafka 1.1
	firstReplicaVersion  = 11
	maxResponseBytes     = 128 << 20 // as large as any response that a broker sends, unless the connection is broken
	batchLengthAt        = 8
	batchMagicAt         = 16
	batchLastDeltaAt     = 23
	batchHeaderBytes     = 61
	batchBytesNotCounted = 12
)

var errMalformed = errors.New("malformed response")

// fetch fetches from a broker.
func (c *client) fetch(ctx context.Context, broker int32, req *fetch.Request) (*fetched, error) {
	req.ReplicaID = -1
	wait := time.Duration(req.MaxWaitTime) * time.Millisecond
	return send[*fetched](ctx, c, wait, &direct{Message: req, broker: broker, receive: receiveFetched})
}

func receiveFetched(r io.Reader, version int16) (protocol.Message, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(size[:])
	if version < firstSessionVersion || length > maxResponseBytes {
		return nil, fmt.Errorf("%w of %d bytes to a fetch request of version %d", errMalformed, length, version)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	d := &decoder{body}
	d.skip(8) // correlation id, throttle time
	f := &fetched{err: failure(d.int16()), session: d.int32()}
	for n := d.int32(); n > 0 && d.b != nil; n-- {
		topic := string(d.take(int(d.int16())))
		for n := d.int32(); n > 0 && d.b != nil; n-- {
			p := fetchedPartition{place: place{topic: topic, id: d.int32()}, err: failure(d.int16()), end: d.int64()}
			d.skip(16)                          // last stable offset, first offset
			d.skip(16 * int(max(0, d.int32()))) // aborted transactions
			if version >= firstReplicaVersion {
				d.skip(4) // preferred replica
			}
			p.batches = d.take(int(max(0, d.int32())))
			f.partitions = append(f.partitions, p)
		}
	}
	if d.b == nil {
		return nil, errMalformed
	}
	return f, nil
}

// decoder reads fields. b is nil after a field that is longer than the rest.
type decoder struct{ b []byte }

var zeros [8]byte

func (d *decoder) take(n int) (field []byte) {
	if n < 0 || n > len(d.b) {
		d.b = nil
		return zeros[:min(max(n, 0), len(zeros))]
	}
	field, d.b = d.b[:n:n], d.b[n:]
	return field
}

func (d *decoder) skip(n int)   { d.take(n) }
func (d *decoder) int16() int16 { return int16(binary.BigEndian.Uint16(d.take(2))) }
func (d *decoder) int32() int32 { return int32(binary.BigEndian.Uint32(d.take(4))) }
func (d *decoder) int64() int64 { return int64(binary.BigEndian.Uint64(d.take(8))) }

// records returns the records from an offset on, and the offset after the last one. It omits a batch that the broker has cut off.
func (p fetchedPartition) records(from int64) (list []*record, next int64, err error) {
	next = from
	var buffer bytes.Buffer
	for b := p.batches; len(b) >= batchHeaderBytes; {
		length := int(binary.BigEndian.Uint32(b[batchLengthAt:])) + batchBytesNotCounted
		if length > len(b) {
			break
		}
		batch := b[:length]
		b = b[length:]
		last := int64(binary.BigEndian.Uint64(batch))
		if batch[batchMagicAt] > 1 {
			last += int64(binary.BigEndian.Uint32(batch[batchLastDeltaAt:]))
		}
		if last < from {
			continue
		}
		buffer.Reset()
		_ = binary.Write(&buffer, binary.BigEndian, uint32(length))
		buffer.Write(batch)
		if list, err = p.decode(list, &buffer, from); err != nil {
			return nil, from, fmt.Errorf("topic %s partition %d offset %d: %w", p.topic, p.id, last, err)
		}
		next = last + 1
	}
	return list, next, nil
}

// decode appends the records of a batch.
func (p fetchedPartition) decode(list []*record, batch *bytes.Buffer, from int64) ([]*record, error) {
	var set protocol.RecordSet
	if _, err := set.ReadFrom(batch); err != nil || set.Records == nil {
		return list, err
	}
	for {
		r, err := set.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		one := &record{place: p.place, offset: r.Offset, time: r.Time, headers: r.Headers}
		if one.key, err = content(r.Key); err != nil {
			return list, err
		}
		if one.value, err = content(r.Value); err != nil {
			return list, err
		}
		if one.offset >= from {
			list = append(list, one)
		}
	}
}

// content copies and releases what the library has read.
func content(b protocol.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	defer b.Close()
	return protocol.ReadAll(b)
}

// read returns the next records of a partition from an offset on, as many as the broker returns in one response, and the offset after them.
func (c *client) read(ctx context.Context, at place, from int64, maxBytes int) (list []*record, next int64, err error) {
	next = from
	list, err = repeated(ctx, func() ([]*record, error) {
		found, err := c.topics(ctx, at.topic)
		if err != nil {
			return nil, err
		}
		led, err := leaders(found)
		if err != nil {
			return nil, err
		}
		res, err := c.fetch(ctx, led[at], &fetch.Request{
			SessionEpoch: -1, MaxBytes: int32(maxBytes), MinBytes: 1, MaxWaitTime: int32(requestTimeout.Milliseconds()),
			Topics: []fetch.RequestTopic{{Topic: at.topic, Partitions: []fetch.RequestPartition{{
				Partition: at.id, CurrentLeaderEpoch: -1, FetchOffset: from, LogStartOffset: -1, PartitionMaxBytes: int32(maxBytes),
			}}}},
		})
		if err != nil {
			return nil, err
		}
		for _, p := range res.partitions {
			if p.err != nil {
				return nil, p.err
			}
			list, next, err = p.records(from)
		}
		return list, errors.Join(err, res.err)
	})
	if err != nil {
		return nil, from, fmt.Errorf("fetch topic %s partition %d: %w", at.topic, at.id, err)
	}
	return list, next, nil
}
