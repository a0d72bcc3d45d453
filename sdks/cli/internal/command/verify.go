package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/services/webhooks/internal/domain"
)

var errNewline = errors.New("the file ends with a newline that was not sent; without the newline, the signature is valid")

func verifyCommand() *cobra.Command {
	var secret, header, file string
	var at int64
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify a Service-Signature against the bytes of a file.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, err := readAll(file, cmd.InOrStdin())
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
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "valid: signed at "+signedAt(header).Format(time.RFC3339))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&secret, "secret", "", "the endpoint's secret, whsec_…")
	f.StringVar(&header, "signature", "", "value of the Service-Signature header")
	f.StringVar(&file, "file", "", "file with the exact bytes of the body; - is standard input")
	f.Int64Var(&at, "at", 0, "Unix time of the verification (default now)")
	for _, name := range []string{"secret", "signature", "file"} {
		_ = cmd.MarkFlagRequired(name) // the flag exists
	}
	return cmd
}

func readAll(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file) //nolint:gosec // the user names it
}

// verify is domain.Verify with a separate error for the newline that editors add at the end of a file.
func verify(header string, body []byte, secret string, now time.Time) error {
	err := domain.Verify(header, body, secret, now)
	sent := bytes.TrimRight(body, "\r\n")
	if errors.Is(err, domain.ErrSignature) && len(sent) < len(body) && domain.Verify(header, sent, secret, now) == nil {
		return errNewline
	}
	return err
}

// signedAt returns the time of a valid header.
func signedAt(header string) time.Time {
	var unix int64
	for part := range strings.SplitSeq(header, ",") {
		if t, ok := strings.CutPrefix(part, "t="); ok {
			unix, _ = strconv.ParseInt(t, 10, 64) // the last one is used, as in Verify
		}
	}
	return time.Unix(unix, 0).UTC()
}
