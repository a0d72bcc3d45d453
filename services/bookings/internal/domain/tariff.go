package domain

import (
	"slices"

	"holdfast.dev/libs/money"
)

// Tariff prices many packages on many days, each as Quote does. Its rules stand in the order in which they decide,
// so that a set of them is a few bits, and what each set does to a price is worked out once.
type Tariff struct {
	rules     []HolidayRule
	all       RuleSet // for every package
	byService map[ServiceID]RuleSet
	byPackage map[PackageID]RuleSet
	parts     map[string]part       // by the set of rules
	known     map[string]adjustment // by the set of rules
}

// RuleSet is some of a tariff's rules, one bit for each.
type RuleSet []byte

func (s RuleSet) add(i int) { s[i/8] |= 1 << (i % 8) }

func (s RuleSet) has(i int) bool { return s[i/8]&(1<<(i%8)) != 0 }

// Both are the rules that are in s and in other.
func (s RuleSet) Both(other RuleSet) RuleSet {
	both := make(RuleSet, len(s))
	for i := range other {
		both[i] = s[i] & other[i]
	}
	return both
}

// Concerning are the rules for one package. Those for all packages and for its service are the same of many packages:
// what they come to is worked out once.
type Concerning [3]RuleSet

// NewTariff takes the rules in any order.
func NewTariff(rules []HolidayRule) *Tariff {
	t := &Tariff{
		rules:     slices.DeleteFunc(slices.Clone(rules), func(r HolidayRule) bool { return !r.Active }),
		byService: map[ServiceID]RuleSet{}, byPackage: map[PackageID]RuleSet{},
		parts: map[string]part{}, known: map[string]adjustment{},
	}
	slices.SortFunc(t.rules, deciding)
	t.all = t.none()
	for i, r := range t.rules {
		switch r.narrowness() {
		case byPackage:
			index(t, t.byPackage, r.PackageIDs, i)
		case byService:
			index(t, t.byService, r.ServiceIDs, i)
		default:
			t.all.add(i)
		}
	}
	return t
}

func (t *Tariff) none() RuleSet { return make(RuleSet, (len(t.rules)+7)/8) }

func index[K comparable](t *Tariff, sets map[K]RuleSet, keys []K, i int) {
	for _, key := range keys {
		if sets[key] == nil {
			sets[key] = t.none()
		}
		sets[key].add(i)
	}
}

// On are the rules that hold on the day.
func (t *Tariff) On(d Date) RuleSet {
	set := t.none()
	for i := range t.rules {
		if t.rules[i].Covers(d) {
			set.add(i)
		}
	}
	return set
}

// For are the rules that concern the package.
func (t *Tariff) For(p Package) Concerning {
	return Concerning{t.all, t.byService[p.ServiceID], t.byPackage[p.ID]}
}

// Quote prices the package by the rules that hold on a day and concern it: those of On and of For.
func (t *Tariff) Quote(p Package, on RuleSet, concerning Concerning) (Price, error) {
	var key []byte
	var sets Concerning
	for i, c := range concerning {
		sets[i] = on.Both(c)
		key = append(key, sets[i]...)
	}
	a, known := t.known[string(key)]
	if !known {
		a = t.adjustment(sets)
		t.known[string(key)] = a
	}
	return a.price(p)
}

func (t *Tariff) adjustment(sets Concerning) adjustment {
	sum := t.part(sets[0])
	for _, set := range sets[1:] {
		sum = sum.with(t.part(set))
	}
	if sum.rules == 0 {
		return adjustment{factor: sum.factor}
	}
	first := t.rules[sum.first]
	if !sum.stackable {
		return adjusted(first, money.Product(first.MultiplierBps))
	}
	return adjusted(first, sum.factor)
}

// part is what some of the rules come to, as long as all stack.
type part struct {
	rules     int // their number
	first     int // the one that decides
	stackable bool
	factor    money.Factor
}

func (t *Tariff) part(set RuleSet) part {
	if p, known := t.parts[string(set)]; known {
		return p
	}
	p := part{stackable: true}
	var factors []int64
	for i, r := range t.rules {
		if !set.has(i) {
			continue
		}
		if p.rules++; p.rules == 1 {
			p.first = i
		}
		p.stackable = p.stackable && r.Stackable
		factors = append(factors, r.MultiplierBps)
	}
	if !p.stackable {
		factors = nil
	}
	p.factor = money.Product(factors...)
	t.parts[string(set)] = p
	return p
}

func (p part) with(q part) part {
	switch {
	case q.rules == 0:
		return p
	case p.rules == 0:
		return q
	case !p.stackable || !q.stackable:
		return part{rules: p.rules + q.rules, first: min(p.first, q.first)}
	}
	return part{rules: p.rules + q.rules, first: min(p.first, q.first), stackable: true, factor: p.factor.And(q.factor)}
}
