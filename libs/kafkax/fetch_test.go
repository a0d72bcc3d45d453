package kafkax

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/segmentio/kafka-go/protocol"

	"holdfast.dev/libs/memtest"
)

// batch returns a batch of records as a broker stores it.
func batch(t *testing.T, base int64, values ...string) []byte {
	t.Helper()
	var records []protocol.Record
	for _, v := range values {
		records = append(records, protocol.Record{
			Key: protocol.NewBytes([]byte("k")), Value: protocol.NewBytes([]byte(v)), Headers: []protocol.Header{{Key: "h", Value: []byte(v)}},
		})
	}
	set := protocol.RecordSet{Version: 2, Records: protocol.NewRecordReader(records...)}
	var buffer bytes.Buffer
	if _, err := set.WriteTo(&buffer); err != nil {
		t.Fatal(err)
	}
	b := buffer.Bytes()[4:]
	binary.BigEndian.PutUint64(b, uint64(base))
	return b
}

// A fetch may begin inside of a batch, and end inside of another one. The next fetch begins after the last whole batch.
func TestRecordsOfAFetch(t *testing.T) {
	t.Parallel()
	p := fetchedPartition{place: place{"things", 1}, batches: slices.Concat(
		batch(t, 3, "3", "4"), batch(t, 5, "5", "6", "7"), batch(t, 20, "20"), batch(t, 21, "21", "22")[:70],
	)}
	list, next, err := p.records(6)
	if err != nil || next != 21 {
		t.Fatal(next, err)
	}
	var got []string
	for _, r := range list {
		if string(r.key) != "k" || string(r.headers[0].Value) != string(r.value) || fmt.Sprint(r.offset) != string(r.value) || r.id != 1 {
			t.Errorf("%+v", r)
		}
		got = append(got, string(r.value))
	}
	if want := []string{"6", "7", "20"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if list, next, err := p.records(21); len(list) != 0 || next != 21 || err != nil {
		t.Error(list, next, err)
	}
	p.batches[70]++ // inside of the records of the first batch
	if list, _, err := p.records(3); err == nil {
		t.Errorf("%d records of a damaged batch", len(list))
	}
}

// A response of many small batches takes about as much memory as its bytes. The test is not parallel, because it measures the memory
// of the whole process.
func TestSmallBatchesFitIntoThePod(t *testing.T) {
	p := fetchedPartition{}
	for len(p.batches) < fetchBytes {
		p.batches = append(p.batches, batch(t, int64(len(p.batches)), "small")...)
	}
	memtest.Under(t, 16<<20, func() {
		if _, _, err := p.records(0); err != nil {
			t.Error(err)
		}
	})
}

// A response that ends too early, or contains lengths beyond its end, is an error.
func TestMalformedResponse(t *testing.T) {
	t.Parallel()
	var whole []byte
	for _, field := range []any{
		int32(1), int32(0), int16(0), int32(7), int32(1), int16(1), []byte("t"), int32(1), int32(0), int16(0), int64(9), int64(9), int64(0),
		int32(-1), int32(-1), int32(3), []byte("abc"),
	} {
		whole, _ = binary.Append(whole, binary.BigEndian, field)
	}
	receive := func(body []byte, version int16) (*fetched, error) {
		res, err := receiveFetched(bytes.NewReader(slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body)), version)
		f, _ := res.(*fetched)
		return f, err
	}
	f, err := receive(whole, firstReplicaVersion)
	if err != nil || f.session != 7 || len(f.partitions) != 1 || f.partitions[0].end != 9 || string(f.partitions[0].batches) != "abc" {
		t.Fatalf("%+v, %v", f, err)
	}
	for n := range whole {
		if _, err := receive(whole[:n], firstReplicaVersion); err == nil {
			t.Errorf("no error after %d of %d bytes", n, len(whole))
		}
	}
	if _, err := receive(whole, firstSessionVersion-1); err == nil {
		t.Error("no error from a broker that is too old")
	}
}
