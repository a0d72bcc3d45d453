package domain

import (
	"slices"
	"strings"
	"time"
)

// Throttle limits sign-in attempts of one account, address, or browser after failures. No account is locked: after Free failures,
// each additional one doubles the wait, up to Longest.
type Throttle struct {
	Free    int
	First   time.Duration
	Longest time.Duration
}

// The throttles. An operator's own browser has a separate one, so that attempts elsewhere do not delay it.
var (
	AccountThrottle = Throttle{Free: 5, First: 2 * time.Second, Longest: 15 * time.Minute}
	BrowserThrottle = Throttle{Free: 10, First: 2 * time.Second, Longest: 15 * time.Minute}
	AddressThrottle = Throttle{Free: 30, First: 2 * time.Second, Longest: 15 * time.Minute}
)

// FactorThrottle applies to codes of one operator's second factor from all browsers that they have not used before. 100 attempts
// guess a six-digit code in 3 of 10,000 cases.
var FactorThrottle = Throttle{Free: 100, First: 2 * time.Second, Longest: time.Hour}

// IsRecoveryCode reports whether s has the form of a recovery code: 16 digits of base 32 in groups of four.
func IsRecoveryCode(s string) bool {
	groups := strings.Split(s, "-")
	return len(groups) == 4 && !slices.ContainsFunc(groups, func(g string) bool {
		return len(g) != 4 || strings.Trim(g, "abcdefghijklmnopqrstuvwxyz234567") != ""
	})
}

// InviteThrottle limits the messages that the members of one tenant can send to any address.
var InviteThrottle = Throttle{Free: 100, First: time.Minute, Longest: time.Hour}

// The throttles of requests for a link that resets a password: of one email address, and of one network.
var (
	ResetAddressThrottle = Throttle{Free: 3, First: 5 * time.Minute, Longest: time.Hour}
	ResetNetworkThrottle = Throttle{Free: 20, First: time.Minute, Longest: time.Hour}
)

// ThrottleMemory is how long failures and invitations count after the last one.
const ThrottleMemory = 24 * time.Hour

// Wait returns how long the next attempt must wait after n failures.
func (t Throttle) Wait(n int) time.Duration {
	if n < t.Free {
		return 0
	}
	wait := t.First
	for range n - t.Free {
		if wait *= 2; wait >= t.Longest {
			return t.Longest
		}
	}
	return wait
}
