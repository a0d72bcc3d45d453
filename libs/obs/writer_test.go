package obs_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/libs/obs"
)

// pieces counts the writes that it receives.
type pieces struct {
	bytes.Buffer
	n int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.n++
	return p.Buffer.Write(b)
}

func TestWriterHandsOnSoonWholeAndInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &pieces{}
		w := obs.NewWriter(out)
		for _, line := range []string{"a\n", "b\n"} {
			if n, err := w.Write([]byte(line)); n != 2 || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
		}
		if out.n != 0 {
			t.Errorf("written at once: %q", out.String())
		}
		time.Sleep(51 * time.Millisecond)
		synctest.Wait()
		if out.n != 1 || out.String() != "a\nb\n" {
			t.Errorf("after 51 ms: %d pieces, %q", out.n, out.String())
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 40<<10) + "\n"))
		if out.n != 2 {
			t.Errorf("a full buffer waits: %d pieces", out.n)
		}
		_, _ = w.Write([]byte("last\n"))
		w.Flush()
		w.Flush()
		if out.n != 3 || !strings.HasSuffix(out.String(), "x\nlast\n") {
			t.Errorf("%d pieces", out.n)
		}
	})
}
