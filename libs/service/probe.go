package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// probeCommand creates the command probe. `helm test` runs it in a pod, because the images contain no other program.
func probeCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "probe URL...", Short: "Check that each URL responds with 200, and retry until the timeout.", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, urls []string) error {
			ctx, stop := context.WithTimeout(cmd.Context(), timeout)
			defer stop()
			for _, url := range urls {
				begin := time.Now()
				if err := probe(ctx, url); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: 200 after %v\n", url, time.Since(begin).Round(time.Millisecond))
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time limit of all checks together")
	return cmd
}

const (
	probeAttempt = 5 * time.Second        // time limit of one request
	probePause   = 500 * time.Millisecond // between two requests
)

// probe requests the URL until it responds with 200 or ctx ends. The error then names the URL and the last result.
func probe(ctx context.Context, url string) error {
	for {
		err := probeOnce(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", url, err)
		case <-time.After(probePause):
		}
	}
}

func probeOnce(ctx context.Context, url string) error {
	ctx, stop := context.WithTimeout(ctx, probeAttempt)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the connection can be used again
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the status is %d, not 200", res.StatusCode) //nolint:err113 // printed, never compared
	}
	return nil
}
