package main

import (
	"time"

	"holdfast.dev/libs/peer"
)

// Config are the console's own settings. libs/service has those of every process.
type Config struct {
	Upstreams  peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"` // of the services that it calls; UPSTREAM_<NAME>_URL for one
	SignKeys   string         `env:"CALLER_SIGN_KEYS,required" secret:"true"`         // <target>=<kid>:<hex>,…
	VerifyKeys string         `env:"CALLER_VERIFY_KEYS,required" secret:"true"`       // of the services that may call: <caller>=<kid>:<hex>[;…],…
	Live       int            `env:"LIVE_PAGES" envDefault:"2000"`                    // pages with live updates that are open at once in this process; further ones are not updated
	LiveTime   time.Duration  `env:"LIVE_PAGE_TIME" envDefault:"15m"`                 // after which a page asks for its updates anew
}
