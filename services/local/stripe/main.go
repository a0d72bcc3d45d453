// Command local-stripe is the development stack's stand-in for Stripe. It returns the responses of Stripe's API for payment
// intents, charges, refunds, disputes, and events, stored in one file. It moves no money and is not used in production.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// commit is set by the linker, as in the Makefile.
var commit string

func main() {
	version := flag.Bool("version", false, "print the version")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: local-stripe serve: runs a Stripe stand-in for development; settings are environment variables (see README.md)")
		flag.PrintDefaults()
	}
	flag.Parse()
	switch {
	case *version:
		fmt.Println("local-stripe dev (commit " + cmp.Or(commit, "unknown") + ", " + runtime.Version() + ")")
		return
	case flag.Arg(0) != "serve" || flag.NArg() > 1:
		flag.Usage()
		if flag.NArg() > 0 {
			os.Exit(2)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "local-stripe:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	c, err := readConfig()
	if err != nil {
		return err
	}
	return run(ctx, c, func(address string) { fmt.Fprintln(os.Stderr, "listening on", address) })
}
