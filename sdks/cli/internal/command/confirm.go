package command

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

// errNoTerminal means that there is nobody to ask.
var errNoTerminal = errors.New("the credential is for live data, and there is no terminal to ask for confirmation: pass --yes")

// confirm asks before a write of live data, unless the user has confirmed it with --yes.
func (a *App) confirm(s *profile.Session, what string, yes bool) error {
	if yes || s.Profile.Mode == profile.Test {
		return nil
	}
	if !a.interactive() {
		return errNoTerminal
	}
	of := s.Profile.Tenant
	if of == "" {
		of = s.Profile.BaseURL
	}
	_, _ = fmt.Fprintf(a.Err, "%s %s changes live data of %s. Continue? [y/N] ", a.Err.Style(output.Bold, "Live mode:"), what, output.Visible(of))
	answer, _ := bufio.NewReader(a.In).ReadString('\n') // the end of the input is a no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}
