package kafkax

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/offsetfetch"
)

// coordinator responds to each request for a group's offsets with its next error, and then with the offset.
type coordinator struct {
	errors []kafka.Error
	offset int64
}

func (c *coordinator) RoundTrip(context.Context, net.Addr, kafka.Request) (kafka.Response, error) {
	if len(c.errors) > 0 {
		err := c.errors[0]
		c.errors = c.errors[1:]
		return &offsetfetch.Response{ErrorCode: int16(err)}, nil
	}
	return &offsetfetch.Response{Topics: []offsetfetch.ResponseTopic{{
		Name: "letters", Partitions: []offsetfetch.ResponsePartition{{CommittedOffset: c.offset}},
	}}}, nil
}

// A group whose coordinator is not ready yet is not a new group. Otherwise all its letters would be sent again.
func TestRedriveGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		errors []kafka.Error
		offset int64
		want   int64
		fails  string
	}{
		"known":                     {nil, 7, 7, ""},
		"the coordinator is coming": {[]kafka.Error{kafka.NotCoordinatorForGroup, kafka.GroupLoadInProgress}, 7, 7, ""},
		"nothing yet":               {nil, -1, -1, ""},
		"first time":                {[]kafka.Error{kafka.GroupIdNotFound}, 7, -1, ""},
		"no right to read":          {[]kafka.Error{kafka.GroupAuthorizationFailed}, 7, 0, "Group Authorization Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redrive{client: &kafka.Client{Addr: kafka.TCP("localhost:1"), Transport: &coordinator{tc.errors, tc.offset}}, topic: "letters", group: "g"}
			got, err := r.committed(t.Context(), 0)
			if got != tc.want || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}
