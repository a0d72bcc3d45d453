package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// watchEvery is how often the groups are checked.
const watchEvery = time.Second

// members ensures that the session of every member can time out. kfake starts a member's session with the first response that
// reaches the member. Without a session, a member killed while it waits to join would hold its partitions indefinitely. Therefore,
// members sends one heartbeat for each member and generation, which also starts the session.
type members struct {
	cluster *kfake.Cluster
	client  *kgo.Client
	begun   map[string]map[string]int32 // the generation whose session started, by group and member
}

func watchMembers(cluster *kfake.Cluster) (*members, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		return nil, err
	}
	return &members{cluster: cluster, client: client, begun: map[string]map[string]int32{}}, nil
}

func (m *members) close() { m.client.Close() }

// look starts the sessions that have not started. The next call retries failures.
func (m *members) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	groups, err := kmsg.NewPtrListGroupsRequest().RequestWith(ctx, m.client)
	if err != nil {
		return
	}
	before := m.begun
	m.begun = make(map[string]map[string]int32, len(groups.Groups))
	for _, g := range groups.Groups {
		if info := m.cluster.GroupInfo(g.Group); info != nil {
			m.begun[g.Group] = m.begin(ctx, info, before[g.Group])
		}
	}
}

// begin returns the generation of each member whose session started.
func (m *members) begin(ctx context.Context, group *kfake.GroupInfo, before map[string]int32) map[string]int32 {
	begun := make(map[string]int32, len(group.Members))
	for _, member := range group.Members {
		if g, ok := before[member.MemberID]; ok && g == group.Epoch {
			begun[member.MemberID] = g
			continue
		}
		if group.State != "Stable" {
			continue // some members wait for a response
		}
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.Generation, req.MemberID = group.Group, group.Epoch, member.MemberID
		if res, err := req.RequestWith(ctx, m.client); err == nil && res.ErrorCode == 0 {
			begun[member.MemberID] = group.Epoch
		}
	}
	return begun
}
