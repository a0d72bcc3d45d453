package pg_test

import (
	"testing"

	"holdfast.dev/libs/pg"
)

// docs/releases.md has the rule: the next minor version, or the next major version from its predecessor's last minor version.
func TestSkippedVersions(t *testing.T) {
	t.Parallel()
	for versions, want := range map[[2]string]string{
		{"1.2.0", "1.2.0"}: "", {"1.2.0", "1.2.9"}: "", {"1.2.3", "1.3.0"}: "", {"1.2.3", "1.3.4"}: "", {"1.9.0", "1.10.0"}: "",
		{"1.2.3", "1.4.0"}: "1.3", {"1.2.3", "1.5.0"}: "1.3, then 1.4", {"0.9.0", "0.11.1"}: "0.10",
		{"1.4.0", "2.0.3"}: "", {"1.4.0", "2.1.0"}: "2.0", {"1.4.0", "2.2.0"}: "2.0, then 2.1", {"1.4.0", "3.0.0"}: "2.0", {"1.4.0", "3.1.0"}: "2.0, then 3.0",
		{"1.3.0", "1.2.0"}: "", {"2.0.0", "1.2.0"}: "", // a rollback
		{"1.2.0", "1.4.0-rc.1"}: "1.3", {"1.3.0-rc.1", "1.4.0"}: "", {"1.2.0", "1.3.0+build.5"}: "",
		{"", "1.5.0"}: "", {"1.2.0", "dev"}: "", {"dev", "1.5.0"}: "", {"1.2.0", "sha-0123456"}: "", {"1.2.0", "1.5"}: "",
	} {
		if got := pg.Skipped(versions[0], versions[1]); got != want {
			t.Errorf("from %q to %q: %q, want %q", versions[0], versions[1], got, want)
		}
	}
}
