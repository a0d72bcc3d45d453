package keyset

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// AllCallers is the name with which Rotate rotates the keys of all pairs in the same step.
const AllCallers = "callers"

// Step describes what Rotate did.
type Step struct {
	Number  int // 1: both keys are accepted; 2: the new key is in use; 3: the old key is removed
	Changes []Change
}

// Change is a setting with a new value.
type Change struct{ Secret, Setting, Value string }

// Rotation is a key that can be rotated.
type Rotation struct {
	Name  string // "gateway/bookings" or "bookings/CURSOR_KEYS"
	uses  place  // the setting whose first key is in use
	knows place  // the setting with all keys that are accepted; for a service's own keys, the same
}

// place is where keys are: a setting, and the peer in it if it has keys of several.
type place struct{ secret, setting, peer string }

// Rotations returns the keys that can be rotated, in the order of the services.
func Rotations() []Rotation {
	var all []Rotation
	for _, p := range Pairs() {
		all = append(all, Rotation{p.String(), place{p.From, signKeys, p.To}, place{p.To, verifyKeys, p.From}})
	}
	for _, name := range Names() {
		for _, setting := range settings(name) {
			if setting == cursorKeys || setting == encryptionKeys {
				own := place{secret: name, setting: setting}
				all = append(all, Rotation{name + "/" + setting, own, own})
			}
		}
	}
	return all
}

// Encrypts reports whether stored data needs the key, so that the old one may be removed only when no data is encrypted with it.
func (r Rotation) Encrypts() bool { return r.uses.setting == encryptionKeys }

// Owner is the service whose Secret contains the key that is in use.
func (r Rotation) Owner() string { return r.uses.secret }

// RotationsOf returns the rotations of a name: one, or those of all pairs for AllCallers.
func RotationsOf(name string) ([]Rotation, error) {
	var found []Rotation
	for _, r := range Rotations() {
		if r.Name == name || name == AllCallers && r.uses.peer != "" {
			found = append(found, r)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("there is no key %q: want CALLER/TARGET such as %s, SERVICE/%s, SERVICE/%s, or %s",
			name, Rotations()[0].Name, cursorKeys, encryptionKeys, AllCallers)
	}
	return found, nil
}

var errSteps = errors.New("the pairs are at different steps: rotate each by its own name until all are at the same step")

// Rotate does the next step of rotations and returns it. The set changes only if all of them are at the same step.
func (s Set) Rotate(list []Rotation) (Step, error) {
	var step Step
	next := Set{}
	for name, values := range s {
		next[name] = maps.Clone(values)
	}
	for _, r := range list {
		number, changes, err := next.next(r)
		if err != nil {
			return Step{}, fmt.Errorf("%s: %w", r.Name, err)
		}
		if step.Number != 0 && number != step.Number {
			return Step{}, errSteps
		}
		step.Number = number
		for _, c := range changes {
			next[c.Secret][c.Setting] = c.Value
		}
		step.Changes = append(step.Changes, changes...)
	}
	step.Changes = latest(step.Changes)
	maps.Copy(s, next)
	return step, nil
}

// latest returns the last change of each setting.
func latest(changes []Change) (out []Change) {
	for _, c := range changes {
		i := slices.IndexFunc(out, func(o Change) bool { return o.Secret == c.Secret && o.Setting == c.Setting })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i] = c
	}
	return out
}

// Next returns the number of the step that Rotate would do.
func (s Set) Next(r Rotation) (int, error) {
	number, _, err := s.next(r)
	return number, err
}

var (
	errNoKey  = errors.New("there is no key yet: run `keys check`")
	errNewest = errors.New("the ids of two keys do not show which one is newer: end this rotation by hand, with an id such as k2 for the new key")
)

// next returns the next step of a rotation. The newest key is the one with the highest number in its id.
func (s Set) next(r Rotation) (number int, changes []Change, err error) {
	known, inUse := s.keys(r.knows), s.keys(r.uses)
	if len(known) == 0 || len(inUse) == 0 {
		return 0, nil, errNoKey
	}
	newest := slices.MaxFunc(known, func(a, b string) int { return generation(a) - generation(b) })
	rest := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == newest })
	same := slices.ContainsFunc(rest, func(k string) bool { return generation(k) == generation(newest) })
	switch own := r.uses == r.knows; {
	case same:
		return 0, nil, errNewest
	case len(known) == 1:
		return 1, []Change{s.change(r.knows, append(known, fresh(newest)))}, nil
	case inUse[0] == newest:
		return 3, []Change{s.change(r.knows, []string{newest})}, nil
	case own:
		return 2, []Change{s.change(r.uses, append([]string{newest}, rest...))}, nil
	default:
		return 2, []Change{s.change(r.uses, []string{newest})}, nil
	}
}

// fresh returns a new key with the id after that of the newest one.
func fresh(newest string) string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "k" + strconv.Itoa(generation(newest)+1) + ":" + hex.EncodeToString(key)
}

// generation returns the number in the id of a key, such as 2 in k2:…; 0 for an id of another form.
func generation(key string) int {
	id, _, _ := strings.Cut(key, ":")
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "k"))
	return n
}

// keys returns the keys at a place, as text.
func (s Set) keys(p place) []string {
	value := s[p.secret][p.setting]
	if p.peer == "" {
		return split(value, ",")
	}
	for _, entry := range split(value, ",") {
		if list, ok := strings.CutPrefix(entry, p.peer+"="); ok {
			return split(list, ";")
		}
	}
	return nil
}

// change returns the setting of a place with other keys there.
func (s Set) change(p place, keys []string) Change {
	c := Change{p.secret, p.setting, strings.Join(keys, ",")}
	if p.peer == "" {
		return c
	}
	entries := split(s[p.secret][p.setting], ",")
	for i, entry := range entries {
		if strings.HasPrefix(entry, p.peer+"=") {
			entries[i] = p.peer + "=" + strings.Join(keys, ";")
		}
	}
	c.Value = strings.Join(entries, ",")
	return c
}

func split(text, separator string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, separator)
}
