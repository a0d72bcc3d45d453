package kafkax

import (
	"testing"

	"github.com/segmentio/kafka-go"
)

func recordsFrom(p *partition, first, end int64) *portion {
	one := &portion{partition: p, from: first, next: end}
	for n := first; n < end; n++ {
		one.records = append(one.records, &record{place: p.place, offset: n})
	}
	return one
}

// A large fetch is handled in parts, each message once and in order.
func TestAFetchIsHandledInParts(t *testing.T) {
	t.Parallel()
	m := newMember(&Consumer{})
	a, b := newPartition(m, place{"things", 0}, 0), newPartition(m, place{"things", 1}, 40)
	later := []*portion{recordsFrom(a, 0, 25), recordsFrom(b, 40, 45)}
	next := map[*partition]int64{a: 0, b: 40}
	var sizes []int
	for len(later) > 0 {
		var now []*portion
		now, later = split(later, 10)
		sizes = append(sizes, count(now))
		for _, one := range now {
			if !one.take(one) {
				t.Errorf("the portion from %d to %d of partition %d is not the next one", one.from, one.next, one.id)
			}
			for _, r := range one.records {
				if r.offset != next[one.partition] {
					t.Errorf("partition %d: offset %d, want %d", one.id, r.offset, next[one.partition])
				}
				next[one.partition]++
			}
		}
	}
	if len(sizes) != 3 || sizes[0] != 10 || sizes[1] != 10 || sizes[2] != 10 || next[a] != 25 || next[b] != 45 {
		t.Errorf("parts of %v, offsets %d and %d", sizes, next[a], next[b])
	}
}

// What was fetched of a partition while an earlier message is blocked is fetched again, from the first message after the blocked ones.
func TestBlockedMessagesAreNotOvertaken(t *testing.T) {
	t.Parallel()
	p := newPartition(newMember(&Consumer{}), place{"things", 0}, 0)
	first, second, third := recordsFrom(p, 0, 5), recordsFrom(p, 5, 8), recordsFrom(p, 8, 9)
	for _, one := range []*portion{first, second} { // as the fetcher does, before they are handled
		if !p.move(one.from, one.next) {
			t.Fatal("not fetched in order")
		}
	}
	if !p.take(first) {
		t.Fatal("the first portion is not handled")
	}
	p.working = true
	if p.take(second) {
		t.Error("the second portion overtakes the first one")
	}
	if p.working = false; p.move(third.from, third.next) || p.take(third) {
		t.Error("the third portion overtakes the second one")
	}
	if offset, _ := p.requested(noLeader); offset != 5 || !p.move(5, 8) || !p.take(second) {
		t.Errorf("the fetch continues at %d", offset)
	}
	if p.take(second) {
		t.Error("a portion is handled twice")
	}
}

// A partition without a committed offset begins at its first message, wherever that is. One whose next messages the brokers have lost
// continues there.
func TestAPartitionBeginsWhereTheBrokersDo(t *testing.T) {
	t.Parallel()
	p := newPartition(newMember(&Consumer{}), place{"things", 0}, fromStart)
	p.move(fromStart, 30)
	one := recordsFrom(p, 30, 32)
	if one.reset = p.reset.Swap(false); !p.move(30, 32) || !p.take(one) {
		t.Error("the first messages are not handled")
	}
	p.move(32, fromStart)
	p.move(fromStart, 50)
	if one = recordsFrom(p, 50, 51); p.take(one) {
		t.Error("messages were skipped unnoticed")
	}
	if one.reset = true; !p.take(one) {
		t.Error("the messages after the lost ones are not handled")
	}
}

// Only the leader of a group knows how many partitions it has distributed, and again in each generation.
func TestOnlyTheLeaderKnowsWhatItDistributed(t *testing.T) {
	t.Parallel()
	b := &balancer{}
	if got := b.take(); got != nil {
		t.Errorf("%v without an assignment", got)
	}
	b.AssignGroups([]kafka.GroupMember{{ID: "a", Topics: []string{"things", "others"}}},
		[]kafka.Partition{{Topic: "things"}, {Topic: "things", ID: 1}, {Topic: "things", ID: 2}})
	if got := b.take(); got["things"] != 3 || len(got) != 2 || got["others"] != 0 {
		t.Errorf("%v", got)
	}
	if got := b.take(); got != nil {
		t.Errorf("%v in the next generation", got)
	}
}
