package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"
)

var errNewline = errors.New("the file ends with a newline that was not sent; without the newline, the signature is valid")

func (a *App) verify() *cobra.Command {
	var secret, header, file string
	var at int64
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify a Service-Signature against the bytes of a file.",
		Example: "  holdfast verify --secret whsec_… --signature 't=…,v1=…' --file body.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, err := a.readAll(file)
			if err != nil {
				return err
			}
			now := time.Now()
			if cmd.Flags().Changed("at") {
				now = time.Unix(at, 0)
			}
			if err := verify(header, body, secret, now); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, "valid: signed at "+signedAt(header).Format(time.RFC3339))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&secret, "secret", "", "the endpoint's `secret`, whsec_…")
	f.StringVar(&header, "signature", "", "`value` of the Service-Signature header")
	f.StringVar(&file, "file", "", "`file` with the exact bytes of the body; - is standard input")
	f.Int64Var(&at, "at", 0, "Unix `time` of the verification (default now)")
	for _, name := range []string{"secret", "signature", "file"} {
		_ = cmd.MarkFlagRequired(name) // the flag exists
	}
	return cmd
}

func (a *App) readAll(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.In)
	}
	return os.ReadFile(file)
}

// verify checks a signature, with a separate error for the newline that editors add at the end of a file.
func verify(header string, body []byte, secret string, now time.Time) error {
	err := signature(header, body, secret, now)
	sent := bytes.TrimRight(body, "\r\n")
	if err != nil && len(sent) < len(body) && signature(header, sent, secret, now) == nil {
		return errNewline
	}
	return err
}

// signature returns an error if the signature of a delivery is not valid. The body need not be an event.
func signature(header string, body []byte, secret string, now time.Time) error {
	_, err := holdfast.Unwrap(body, http.Header{"Service-Signature": {header}}, secret, holdfast.WithClock(func() time.Time { return now.Truncate(time.Second) }))
	if errors.Is(err, holdfast.ErrSignature) {
		return errors.New(strings.TrimPrefix(err.Error(), "holdfast: "))
	}
	return nil
}

// signedAt returns the time of a valid header.
func signedAt(header string) time.Time {
	var unix int64
	for part := range strings.SplitSeq(header, ",") {
		if t, ok := strings.CutPrefix(strings.TrimSpace(part), "t="); ok {
			unix, _ = strconv.ParseInt(t, 10, 64) // the last one is used, as in the verification
		}
	}
	return time.Unix(unix, 0).UTC()
}
