package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/oauth"
	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

// The exit codes. The help of the root command and the README list them.
const (
	exitError        = 1
	exitUsage        = 2
	exitRejected     = 3
	exitCredential   = 4
	exitNotFound     = 5
	exitConflict     = 6
	exitLimit        = 7
	exitUnavailable  = 8
	exitNotConfirmed = 9
	exitInterrupted  = 130 // as shells report SIGINT
)

// usageError is an invalid command line.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// usage marks an error as an invalid command line.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errNotConfirmed means that the user did not confirm a write of live data.
var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	var invalid usageError
	var unknown profile.UnknownError
	var failed *holdfast.Error
	var connection *holdfast.ConnectionError
	var token *holdfast.TokenError
	switch {
	case errors.As(err, &invalid), errors.As(err, &unknown), errors.Is(err, profile.ErrNotSelected):
		return exitUsage
	case errors.Is(err, errNotConfirmed), errors.Is(err, errNoTerminal):
		return exitNotConfirmed
	case errors.As(err, &failed):
		return statusCode(failed.Status)
	case errors.As(err, &token), errors.Is(err, profile.ErrNone), errors.Is(err, profile.ErrNoCredential), errors.Is(err, oauth.ErrUnknownApp), errors.Is(err, oauth.ErrRefused):
		return exitCredential
	case errors.As(err, &connection):
		return exitUnavailable
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitError
}

// statusCode returns the exit code for the status of a response.
func statusCode(status int) int {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitCredential
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	case http.StatusTooManyRequests:
		return exitLimit
	}
	if status >= http.StatusInternalServerError {
		return exitUnavailable
	}
	return exitRejected
}

// explain writes an error: what went wrong, where, and what to do.
func (a *App) explain(cmd *cobra.Command, err error) {
	title := a.Err.Style(output.Red, "Error:")
	var failed *holdfast.Error
	if !errors.As(err, &failed) {
		_, _ = fmt.Fprintf(a.Err, "%s %s\n", title, output.Visible(err.Error()))
		a.hints(cmd, err)
		return
	}
	code := string(failed.Code)
	if code == "" {
		code = "no error code: the response is not from the API"
	}
	fields := a.fields(cmd, failed)
	text := failed.Message
	if len(fields) == 1 { // the message is that of the field
		text, fields = fields[0], nil
	}
	_, _ = fmt.Fprintf(a.Err, "%s %s (%d %s)\n", title, output.Visible(text), failed.Status, output.Visible(code))
	for _, field := range fields {
		a.note("  %s", field)
	}
	if remedy := operations.Remedies[string(failed.Code)]; remedy != "" && len(failed.Errors) == 0 {
		a.note("  %s", remedy)
	}
	if failed.Code == holdfast.ErrRevokedCredential || failed.Code == holdfast.ErrExpiredCredential {
		a.note("  Run `holdfast login` to get a new credential.")
	}
	if failed.RequestID != "" {
		a.note("  Request ID: %s", failed.RequestID)
	}
}

// fields returns the messages of an error by field.
func (a *App) fields(cmd *cobra.Command, failed *holdfast.Error) []string {
	var all []string
	for _, param := range slices.Sorted(maps.Keys(failed.Errors)) {
		all = append(all, a.flagOf(cmd, param)+": "+strings.Join(failed.Errors[param], " ")+a.hintFor(cmd, param))
	}
	return all
}

// hints writes what to do about an error that is not from the API.
func (a *App) hints(cmd *cobra.Command, err error) {
	var invalid usageError
	var connection *holdfast.ConnectionError
	switch {
	case errors.As(err, &invalid):
		a.note("Usage: %s\nRun `%s --help` for all flags.", cmd.UseLine(), cmd.CommandPath())
	case errors.As(err, &connection) && connection.IdempotencyKey != "":
		a.note("  The request may have been carried out. To find out, repeat it with --idempotency-key %s: it has no second effect.", connection.IdempotencyKey)
	case errors.As(err, &connection):
		a.note("  Check the address of the platform with `holdfast status`, and your connection.")
	}
}

// flagOf returns the flag of a parameter of the API, or the parameter if the command has no flag for it.
func (a *App) flagOf(cmd *cobra.Command, param string) string {
	name := flagName(param)
	if flag := a.flagWith(cmd, param); flag != nil {
		return "--" + name
	}
	return param
}

// element is the part of a parameter that names an element of an array: .0 in event_types.0.
var element = regexp.MustCompile(`\.\d+(\.|$).*`)

// flagWith returns the flag that sets a parameter, or the array that contains it, or nil.
func (a *App) flagWith(cmd *cobra.Command, param string) *pflag.Flag {
	if cmd == nil {
		return nil
	}
	return cmd.Flags().Lookup(element.ReplaceAllString(flagName(param), ""))
}

// hintFor returns the values of an enumeration that are similar to a rejected one, or "".
func (a *App) hintFor(cmd *cobra.Command, param string) string {
	flag := a.flagWith(cmd, param)
	if flag == nil {
		return ""
	}
	i, ok := flag.Value.(*input)
	if !ok {
		return ""
	}
	for _, given := range i.given {
		if similar := similarTo(given, i.param.Values); len(similar) > 0 && !slices.Contains(i.param.Values, given) {
			return " Did you mean " + strings.Join(similar, " or ") + "?"
		}
	}
	return ""
}
