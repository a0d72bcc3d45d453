package kafkax

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A group whose coordinator is not ready yet is not a new group. Otherwise all its letters would be sent again.
func TestRedriveGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		errors []*kerr.Error
		commit bool
		want   int64
		fails  string
	}{
		"known":                     {nil, true, 7, ""},
		"the coordinator is coming": {[]*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorLoadInProgress}, true, 7, ""},
		"nothing yet":               {nil, false, 0, ""},
		"first time":                {[]*kerr.Error{kerr.GroupIDNotFound}, true, 0, ""},
		"no right to read":          {[]*kerr.Error{kerr.GroupAuthorizationFailed}, true, 0, "Group Authorization Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "letters"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(broker.Close)
			client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			admin := kadm.NewClient(client)
			if tc.commit {
				offsets := kadm.Offsets{}
				offsets.AddOffset("letters", 0, 7, -1)
				if err := admin.CommitAllOffsets(t.Context(), "g", offsets); err != nil {
					t.Fatal(err)
				}
			}
			for _, one := range tc.errors {
				broker.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
					res, _ := req.ResponseKind().(*kmsg.OffsetFetchResponse)
					res.ErrorCode = one.Code
					for _, g := range req.(*kmsg.OffsetFetchRequest).Groups {
						res.Groups = append(res.Groups, kmsg.OffsetFetchResponseGroup{Group: g.Group, ErrorCode: one.Code})
					}
					return res, nil, true
				})
			}
			got, err := Cluster{Brokers: broker.ListenAddrs()}.client().committed(t.Context(), "g", map[place]int64{{topic: "letters"}: 0})
			if got[place{topic: "letters"}] != tc.want || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
