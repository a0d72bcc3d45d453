package kindtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// releaseIndex is the part of images.json of a release that the test reads.
type releaseIndex struct {
	Images []struct{ Service, Repository, Digest string }
}

// TestReleases upgrades from one release to the next and rolls back, and loses no request. `make kind-release-test` installed the
// previous release. Each release is a folder of `make release`.
func TestReleases(t *testing.T) {
	previous, current := os.Getenv("RELEASE_PREVIOUS"), os.Getenv("RELEASE_CURRENT")
	if previous == "" {
		t.Skip("RELEASE_PREVIOUS is not set: make kind-release-test sets it")
	}
	registry, chart := os.Getenv("RELEASE_REGISTRY"), os.Getenv("RELEASE_CHART")
	runsRelease(t, registry, previous)
	load := send(t, rate, key(t), mixed)
	if err := lab.Upgrade(t.Context(), chart, "--set", "defaults.image.registry="+registry,
		"-f", filepath.Join(chart, "values-dev.yaml"), "-f", filepath.Join(root, "k8s/values-test.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, service := range services {
		settled(t, service)
	}
	runsRelease(t, registry, current)
	load.stop().none(t, "upgrade to the next release")

	load = send(t, rate, key(t), mixed)
	if _, err := lab.RunHelm(t.Context(), "rollback", namespace, "--wait", "--timeout", "5m"); err != nil {
		t.Fatal(err)
	}
	for _, image := range readRelease(t, previous).Images {
		settled(t, image.Service)
	}
	runsRelease(t, registry, previous)
	load.stop().none(t, "rollback to the previous release")
}

func readRelease(t *testing.T, folder string) releaseIndex {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "images.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index releaseIndex
	if err := json.Unmarshal(text, &index); err != nil || len(index.Images) == 0 {
		t.Fatalf("images.json: %v\n%s", err, text)
	}
	return index
}

// runsRelease fails the test unless each Deployment runs the image of the release, by its digest.
func runsRelease(t *testing.T, registry, folder string) {
	t.Helper()
	for _, image := range readRelease(t, folder).Images {
		want := registry + "/" + image.Repository + "@" + image.Digest
		got := kubectl(t, "get", "deployment/holdfast-"+image.Service, "-o", "jsonpath={.spec.template.spec.containers[*].image}")
		if !strings.Contains(got, want) {
			t.Errorf("%s runs %s, want %s", image.Service, got, want)
		}
	}
}
