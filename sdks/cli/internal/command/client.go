package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/service"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/peers/public"
)

// clientConfig contains the settings of the commands for developers of receivers. Settings that neither a flag nor the
// environment provides are read from the .run/env of a running platform, in the working folder or a folder above it.
type clientConfig struct {
	BaseURL string `env:"BASE_URL"`                    // URL of the platform, with or without /api/v1
	Key     string `env:"DEMO_TEST_KEY" secret:"true"` // API key of test mode
}

// livePrefix is the prefix of live-mode API keys.
const livePrefix = "svc_live_"

var (
	errNoBase = errors.New("no platform configured: pass --base-url, set BASE_URL, or run the command in the folder of a running platform (with .run/env)")
	errNoKey  = errors.New("no API key configured: pass --key, set DEMO_TEST_KEY, or run the command in the folder of a running platform (with .run/env)")
	errLive   = errors.New("live mode keys are not allowed: use a key that starts with svc_test_")
)

func (c *clientConfig) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.BaseURL, "base-url", "", "URL of the platform, with or without /api/v1 (default BASE_URL)")
	cmd.Flags().StringVar(&c.Key, "key", "", "API key of test mode (default DEMO_TEST_KEY)")
}

// connect creates the client. A flag overrides the environment.
func (c *clientConfig) connect() (*public.Client, error) {
	var found clientConfig
	if err := service.Load(&found, service.EnvFile()); err != nil {
		return nil, err
	}
	if c.BaseURL != "" {
		found.BaseURL = c.BaseURL
	}
	if c.Key != "" {
		found.Key = c.Key
	}
	switch {
	case strings.HasPrefix(found.Key, livePrefix):
		return nil, errLive
	case found.BaseURL == "":
		return nil, errNoBase
	case found.Key == "":
		return nil, errNoKey
	}
	client, err := public.New(found.BaseURL, found.Key)
	if err != nil {
		return nil, fmt.Errorf("the base URL: %w", err)
	}
	return client, nil
}

// checkType returns an error that lists the event types if name is not one of them.
func checkType(name string) error {
	names := make([]string, len(proto.EventTypes))
	for i, t := range proto.EventTypes {
		if t.Name == name {
			return nil
		}
		names[i] = t.Name
	}
	return fmt.Errorf("%q is not an event type; the types are %s", name, strings.Join(names, ", "))
}
