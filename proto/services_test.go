package proto_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto"
)

func TestServices(t *testing.T) {
	t.Parallel()
	names := strings.Join(proto.ServiceNames(), " ")
	if names != "identity customers bookings payments webhooks logs console gateway" {
		t.Errorf("the services are %q", names)
	}
	for _, s := range proto.Services() {
		if s.Kafka() == (s.Name == "console") {
			t.Errorf("%s: Kafka is %v", s.Name, s.Kafka())
		}
	}
}

func TestServiceNamed(t *testing.T) {
	t.Parallel()
	if s, ok := proto.ServiceNamed("bookings"); !ok || s.Name != "bookings" || !s.Database {
		t.Errorf("bookings is %+v, %v", s, ok)
	}
	if s, ok := proto.ServiceNamed("nothing"); ok {
		t.Errorf("nothing is %+v", s)
	}
	if s := proto.PublicService(); s.Name != "gateway" {
		t.Errorf("clients reach %+v", s)
	}
}

func TestServicesThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"services: [a]":                                            "not a mapping",
		"services: {Ab: {}}":                                       `"Ab" is no lower-case word`,
		"services: {a: {}}":                                        `"a" is no lower-case word`,
		"services: {one: {databases: true}}":                       "field databases not found",
		"services: {one: {calls: [two]}}":                          "one calls two",
		"services: {one: {calls: [one]}}":                          "one calls one",
		"services: {one: {reads: [two]}}":                          "one reads two",
		"services: {one: {topics: [two]}, three: {topics: [two]}}": "two services write the topic two",
		"services: {one: {}}":                                      "one service must be public, not 0",
		"services: {one: {public: true}, two: {public: true}}":     "one service must be public, not 2",
		"service: {}":                                              "field service not found",
	} {
		_, err := proto.ParseServices([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Identity erases tenants, so it calls every other service that has a database.
func TestErasureReachesEachDatabase(t *testing.T) {
	t.Parallel()
	identity, _ := proto.ServiceNamed("identity")
	for _, s := range proto.Services() {
		if s.Database && s.Name != identity.Name && !slices.Contains(identity.Calls, s.Name) {
			t.Errorf("%s has a database: add it to the calls of %s, or tenants are never erased from it", s.Name, identity.Name)
		}
	}
}
