package main

import (
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const session = time.Second

// crashWhileJoining sends a join request and closes the connection before the response.
func crashWhileJoining(t *testing.T, broker, group, topic string) {
	t.Helper()
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{topic}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", subscription.AppendTo(nil)
	join := kmsg.NewPtrJoinGroupRequest()
	join.SetVersion(1) // the version that does not require a member id first
	join.Group, join.ProtocolType = group, "consumer"
	join.SessionTimeoutMillis = int32(session.Milliseconds())
	join.RebalanceTimeoutMillis = join.SessionTimeoutMillis
	join.Protocols = append(join.Protocols, protocol)
	conn, err := net.Dial("tcp", broker)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, join, 1)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// membersOf returns the number of members of a stable group; 0 if the group is not stable.
func membersOf(t *testing.T, client *kgo.Client, group string) int {
	t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	res, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Groups) != 1 || res.Groups[0].State != "Stable" {
		return 0
	}
	return len(res.Groups[0].Members)
}

func TestMemberThatCrashedWhileJoiningIsDropped(t *testing.T) {
	t.Parallel()
	client, stop := broker(t, t.TempDir())
	defer stop()
	create(t, client, "things", "60000")
	address := client.OptValue(kgo.SeedBrokers).([]string)[0]
	alive, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("things"), kgo.Balancers(kgo.RangeBalancer()),
		kgo.SessionTimeout(session), kgo.RebalanceTimeout(session), kgo.HeartbeatInterval(session/10),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	reaches := func(n int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); membersOf(t, client, "readers") != n; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the group has %d members, want %d", membersOf(t, client, "readers"), n)
			}
		}
	}
	reaches(1)
	crashWhileJoining(t, address, "readers", "things")
	reaches(2) // the crashed client counts as a member
	reaches(1)
}
