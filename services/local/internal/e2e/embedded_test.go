package e2e

import "testing"

// TestEmbeddedBroker runs the tests of Kafka on a platform with the embedded broker, which machines without a JDK use. This platform
// runs only for these tests. The greeting comes first, because its commands work once.
func TestEmbeddedBroker(t *testing.T) {
	onMachine(t)
	t.Parallel()
	p := fresh(t, "KAFKA=embedded")
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		check func(t *testing.T, p *platform)
	}{
		{"Greeting", checkGreeting},
		{"SeededCatalogue", checkSeededCatalogue},
		{"EveryCommittedChangeHasItsEvent", checkEveryCommittedChangeHasItsEvent},
		{"NoEventWithoutAChange", checkNoEventWithoutAChange},
		{"WritesContinueWithoutKafka", checkWritesContinueWithoutKafka},
		{"AKilledConsumerDoesEachEffectOnce", checkAKilledConsumerDoesEachEffectOnce},
		{"PoisonIsDeadLetteredAndRedriven", checkPoisonIsDeadLetteredAndRedriven},
		{"EventsArriveWithinASecond", checkEventsArriveWithinASecond},
	} {
		t.Run(test.name, func(t *testing.T) { test.check(t, p) })
	}
}
