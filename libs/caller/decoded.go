package caller

import (
	"strings"
	"sync"
)

// maxDecoded is the number of decoded callers that are stored, of about 1 KB each. When it is reached, all are removed.
const maxDecoded = 4096

// decoded stores the callers of recent calls, by their encoded form. A credential has the same form until its tenant or its scopes
// change, so most calls need no decoding.
type decoded struct {
	mu      sync.RWMutex
	callers map[string]Caller
}

// decode returns the caller that part encodes, or false. Its scopes are shared with other requests and must not be changed.
func (d *decoded) decode(part string) (Caller, bool) {
	d.mu.RLock()
	c, ok := d.callers[part]
	d.mu.RUnlock()
	if ok {
		return c, true
	}
	if !decode(part, &c) {
		return Caller{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.callers == nil || len(d.callers) >= maxDecoded {
		d.callers = make(map[string]Caller)
	}
	d.callers[strings.Clone(part)] = c // part is a piece of a larger header
	return c, true
}
