package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

// errNoTerminal means that there is nobody to ask.
var errNoTerminal = errors.New("the credential is for live data, and there is no terminal to ask for confirmation: pass --yes")

// confirm asks before a write of live data, unless the user has confirmed it with --yes.
func (a *App) confirm(ctx context.Context, s *profile.Session, what string, yes bool) error {
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
	response, err := await(ctx, func() (string, error) {
		line, _ := bufio.NewReader(a.In).ReadString('\n') // the end of the input is a no
		return line, nil
	})
	if err != nil {
		_, _ = fmt.Fprintln(a.Err)
		return err
	}
	switch strings.ToLower(strings.TrimSpace(response)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}

// await returns what the user types, or the error of ctx after Ctrl-C. The process ends then, and the reader with it.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() {
		text, err := read()
		lines <- line{text, err}
	}()
	select {
	case l := <-lines:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// readSecret returns what the user types without showing it. The terminal hides it before the prompt appears, because a user may paste
// immediately.
func (a *App) readSecret(ctx context.Context, f *os.File, prompt string) (string, error) {
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", err
	}
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, a.Err}, "")
	text, err := await(ctx, func() (string, error) { return terminal.ReadPassword(prompt) })
	if errors.Is(err, io.EOF) { // of Ctrl-C, which is no signal in this mode
		err = context.Canceled
	}
	err = errors.Join(err, term.Restore(int(f.Fd()), state))
	if err != nil {
		_, _ = fmt.Fprintln(a.Err)
	}
	return text, err
}
