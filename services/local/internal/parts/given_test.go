package parts

import (
	"context"
	"net"
	"strings"
	"testing"

	"holdfast.dev/libs/testservers"
)

func TestGivenPartsAreChecked(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedPort := l.Addr().String()
	_ = l.Close()
	postgres := testservers.Getenv(t, "TEST_POSTGRES_URL")
	for name, tc := range map[string]struct {
		check   func(context.Context, string) error
		address string
		want    string // a part of the error; "": none
	}{
		"postgres":              {CheckPostgres, postgres, ""},
		"postgres, closed port": {CheckPostgres, "postgres://me:secret@" + closedPort + "/x", "DATABASE_URL: no connection to " + closedPort},
		"postgres, no URL":      {CheckPostgres, "host=localhost password=secret", "DATABASE_URL must be a postgres:// URL"},
		"postgres, refused":     {CheckPostgres, strings.Replace(postgres, "postgres:", "unknown:secret", 1), "DATABASE_URL"},
		"redis":                 {CheckRedis, testservers.Getenv(t, "TEST_REDIS_URL"), ""},
		"redis, closed port":    {CheckRedis, "redis://:secret@" + closedPort + "/0", "REDIS_URL: no response from " + closedPort},
		"redis, no URL":         {CheckRedis, "localhost:6379", "REDIS_URL must be a redis:// or rediss:// URL"},
		"redis, no Sentinel":    {CheckRedis, "redis://:secret@" + closedPort + "/0?master_name=m", "REDIS_URL: no response from " + closedPort},
		"redis, no parameter":   {CheckRedis, "redis://:secret@" + closedPort + "/0?sentinel=m", "there are cluster, master_name and addr"},
		"kafka":                 {CheckKafka, testservers.Getenv(t, "TEST_KAFKA_BROKERS"), ""},
		"kafka, closed port":    {CheckKafka, closedPort, "KAFKA_BROKERS: no response from " + closedPort},
	} {
		err := tc.check(t.Context(), tc.address)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGivenPostgresMustBeAnAdministrators checks that a role that cannot create databases is refused before anything is created.
func TestGivenPostgresMustBeAnAdministrators(t *testing.T) {
	t.Parallel()
	admin, err := Administrator(t.Context(), testservers.Getenv(t, "TEST_POSTGRES_URL"), "admin", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckPostgres(t.Context(), admin); err != nil {
		t.Errorf("an administrator who is no superuser: %v", err)
	}
	d := Database{Name: "given_check", Passwords: map[string]string{"owner": "a", "app": "it's", "worker": "c"}}
	for range 2 { // the second time changes nothing
		if err := EnsureDatabase(t.Context(), admin, d); err != nil {
			t.Fatal(err)
		}
	}
	ordinary, err := d.URL(admin, "app")
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckPostgres(t.Context(), ordinary); err == nil || !strings.Contains(err.Error(), "CREATEROLE") {
		t.Errorf("an ordinary role: %v", err)
	}
}
