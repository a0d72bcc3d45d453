package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
)

// TestMain also runs the test executable as the stand-in, so that tests can kill it.
func TestMain(m *testing.M) {
	if os.Getenv("STAND_IN_CHILD") != "" {
		os.Args = []string{"local-stripe", "serve"}
		main()
		return
	}
	if os.Getenv("TEST_SCALE") != "full" {
		if err := flag.Set("rapid.checks", "40"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// child starts a stand-in as a separate process.
func child(t *testing.T, folder string) (*standIn, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{
		"STAND_IN_CHILD=1", "LOCAL_STRIPE_HTTP_ADDR=127.0.0.1:0", "LOCAL_STRIPE_DATA_DIR=" + folder, "LOCAL_STRIPE_CONTROL_TOKEN=" + controlToken, "LOCAL_STRIPE_TEST_SECRET_KEY=sk_test_demo",
	}
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			s := &standIn{t: t, url: "http://" + address}
			s.API = s.with("sk_test_demo")
			return s, cmd
		}
	}
	t.Fatal("the stand-in does not start")
	return nil, nil
}

// payWith creates and confirms an intent, each with a key.
func (s *standIn) payWith(key string) (*stripe.PaymentIntent, error) {
	p := intent(500, "usd")
	p.SetIdempotencyKey(key)
	pi, err := s.PaymentIntents.New(p)
	if err != nil {
		return nil, err
	}
	c := &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_visa"), ReturnURL: stripe.String("https://shop.example")}
	c.SetIdempotencyKey(key + " confirm")
	return s.PaymentIntents.Confirm(pi.ID, c)
}

// charges returns the number of successful charges of each intent.
func (s *standIn) charges() map[string]int {
	s.t.Helper()
	var all struct {
		Charges []struct {
			Intent string `json:"payment_intent"`
			Status string
		}
	}
	s.control("GET", "accounts/"+demoAccount+"/snapshot", nil, &all)
	charges := map[string]int{}
	for _, c := range all.Charges {
		if c.Status == "succeeded" {
			charges[c.Intent]++
		}
	}
	return charges
}

// TestKillPreservesResponses checks that a response is still stored after a kill -9 at any moment, and that a repeated key returns
// it.
func TestKillPreservesResponses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	completed := map[string]string{} // intent by key
	for round := range 5 {
		s, cmd := child(t, folder)
		var all sync.WaitGroup
		var mu sync.Mutex
		for worker := range 8 {
			all.Go(func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("%d-%d-%d", round, worker, i)
					pi, err := s.payWith(key)
					if err != nil {
						return
					}
					mu.Lock()
					completed[key] = pi.ID
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(100+50*round) * time.Millisecond) // the kill occurs at some point under load
		_ = cmd.Process.Kill()
		all.Wait()
		_ = cmd.Wait()
	}
	s, _ := child(t, folder)
	if len(completed) < 20 {
		t.Fatalf("only %d responses before the kills", len(completed))
	}
	for key, id := range completed {
		pi, err := s.payWith(key)
		if err != nil || pi.ID != id || pi.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("key %s: %v %v, want %s", key, pi, err, id)
		}
	}
	charges := s.charges()
	for _, id := range completed {
		if charges[id] != 1 {
			t.Errorf("%s has %d charges", id, charges[id])
		}
	}
}

func TestRestartPreservesState(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config) { c.AsyncDelay = 300 * time.Millisecond })
	waiting := s.pay(500, "usd", "pm_usBankAccount_success", stripe.PaymentIntentStatusProcessing)
	s.stop()
	s = startWith(t, s.config)
	s.await(waiting.ID, stripe.PaymentIntentStatusSucceeded)
}
