package parts

import (
	"net"
	"testing"
)

func TestPortsAreAssignedOnce(t *testing.T) {
	t.Parallel()
	var one, two Ports
	first, err := one.Free(0)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Ports{"same checkout": &one, "another checkout": &two} {
		if other, err := p.Free(first); err != nil || other == first {
			t.Fatalf("%s was given %d (%v) too", name, other, err)
		}
		if p.Take(first) {
			t.Fatalf("%s took %d too", name, first)
		}
	}
}

func TestTakenPortIsReplaced(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	taken := l.Addr().(*net.TCPAddr).Port
	var p Ports
	if port, err := p.Free(taken); err != nil || port == taken {
		t.Fatalf("port %d (%v) is taken", port, err)
	}
	if p.Take(taken) {
		t.Fatal("a taken port was taken")
	}
}

func TestVersionsAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)":     "15",
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3": "7",
		"something else": "",
	} {
		found := majorVersion.FindStringSubmatch(text)
		if (found == nil && want != "") || (found != nil && found[1] != want) {
			t.Errorf("%q gives %v", text, found)
		}
	}
	for text, want := range map[string]int{`openjdk version "17.0.15" 2025-04-15`: 17, `java version "1.8.0_402"`: 1, `openjdk version "21" 2023`: 21, "": 0} {
		if got := javaMajor(text); got != want {
			t.Errorf("%q gives %d", text, got)
		}
	}
}
