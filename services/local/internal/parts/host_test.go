package parts

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/services/local/internal/supervise"
)

// TestPartThatCrashesAtStartIsRestarted checks the restart of a part, because another process can briefly use a port that was free
// when it was selected.
func TestPartThatCrashesAtStartIsRestarted(t *testing.T) {
	t.Parallel()
	for deaths, want := range map[string]string{"2": "", "9": "part does not start: exit status 1"} {
		dir := t.TempDir()
		group := &supervise.Group{PIDs: dir}
		t.Cleanup(group.Stop)
		script := `echo >> starts; [ "$(wc -l < starts)" -gt ` + deaths + ` ] || exit 1; touch ready; exec sleep 60`
		if err := group.Start(supervise.Spec{Name: "part", Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir}); err != nil {
			t.Fatal(err)
		}
		ready := func(context.Context) error {
			_, err := os.Stat(filepath.Join(dir, "ready"))
			return err
		}
		err := (&Host{Group: group}).await(t.Context(), "part", ready)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("a part that crashes %s times: %v, want %q", deaths, err, want)
		}
	}
}

// A build for a machine that can run Apache Kafka lacks the embedded broker. The error names the command that builds it.
func TestNoEmbeddedBroker(t *testing.T) {
	t.Parallel()
	h := Host{Dir: t.TempDir()}
	err := h.StartKafka(t.Context(), Kafka{Kind: Embedded, Name: "kafka", Embedded: filepath.Join(h.Dir, "local-kafka")})
	if err == nil || !strings.Contains(err.Error(), "make bin/local-kafka") {
		t.Errorf("error %v", err)
	}
}
