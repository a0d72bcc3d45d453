package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// blockMark separates the outputs of the blocks.
const blockMark = "=== block "

// TestReadmeTwice runs the blocks of the front page and of the walkthrough in one shell, each of them twice in a row, against a running platform:
// the second run has the same results as the first one, and only the errors that the pages promise occur.
func TestReadmeTwice(t *testing.T) {
	t.Parallel()
	var pages []byte
	for _, name := range []string{"README.md", "docs/walkthrough.md"} {
		page, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page...)
	}
	script := "set -o pipefail\n"
	blocks := 0
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(pages), -1) {
		block := m[1]
		if strings.HasPrefix(block, "make ") { // they start and test platforms and clusters
			continue
		}
		// listen runs in a second terminal until it is stopped.
		block = regexp.MustCompile(`(?m)^bin/holdfast listen .*$`).ReplaceAllString(block, "bin/holdfast listen >>listen.log 2>&1 & listener=$!") + "[ -z \"$listener\" ] || kill $listener; listener=\n"
		blocks++
		for run := 1; run <= 2; run++ {
			script += fmt.Sprintf("echo; echo '%s%d, run %d'; trap 'echo FAILED: \"$BASH_COMMAND\"' ERR\n%s\ntrap - ERR\n", blockMark, blocks, run, block)
		}
	}
	if blocks < 8 {
		t.Fatalf("%d blocks", blocks)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = shared.Root
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	first := map[string]string{}
	for _, text := range strings.Split(string(out), blockMark)[1:] {
		name, text, _ := strings.Cut(text, "\n")
		block, _, _ := strings.Cut(name, ",")
		if strings.HasSuffix(name, "run 2") { // a tenant exists once
			text = strings.Replace(text, "FAILED: bin/identity tenant create ", "", 1)
		}
		refused := strings.Count(text, `"code":"slot_unavailable"`) // the second booking of a slot
		if errors := strings.Count(text, `"error":{`); errors != refused || refused > 1 || strings.Contains(text, "FAILED: ") {
			t.Errorf("block %s: %d errors\n%s", name, errors, text)
		}
		kinds := strings.Join(regexp.MustCompile(`"(?:object|status|payment_status|reason)":"?\w+`).FindAllString(text, -1), " ")
		if before, again := first[block]; again && before != kinds {
			t.Errorf("block %s differs from its first run:\n%s\n%s\n%s", name, before, kinds, text)
		}
		first[block] = kinds
	}
	if all := string(out); strings.Count(all, `"payment_status":"deposit_paid"`) < 2 || strings.Count(all, `"status":"converted"`) != 2 {
		t.Errorf("no deposit or no lead:\n%s", all)
	}
	if pdf, err := os.ReadFile(filepath.Join(shared.Root, "invoice.pdf")); err != nil || !strings.HasPrefix(string(pdf), "%PDF-") {
		t.Errorf("%v %.20q", err, pdf)
	}
}
