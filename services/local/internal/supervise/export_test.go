package supervise

// PID returns the current process id of name; 0 if it is not running.
func (g *Group) PID(name string) int {
	p := g.find(name)
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}
